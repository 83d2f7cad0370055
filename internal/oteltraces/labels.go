package oteltraces

// label is the number of an attribute that a label of a key is made of, or an origin. 0 is
// every other attribute.
type label uint8

const labelOther label = 0

// wanted is 1 for a label and 0 for labelOther.
func wanted(l label) int {
	if l != labelOther {
		return 1
	}
	return 0
}

// The attributes of a span that labels are made of. Those that mean the same stand one
// behind the other, the present name first.
const (
	labelHTTPMethod label = iota + 1
	labelOldHTTPMethod
	labelHTTPRoute
	labelHTTPStatus
	labelOldHTTPStatus
	labelGRPCStatus
	labelRPCStatus
	labelDBSystem
	labelOldDBSystem
	labelDBNamespace
	labelOldDBNamespace
	labelDBCollection
	labelOldDBCollection
	labelDBOperation
	labelOldDBOperation
	labelMessagingSystem
	labelMessagingDestination
	labelOldMessagingDestination
	labelMessagingOperation
	labelMessagingOperationType
	labelOldMessagingOperation
	labelRPCSystem
	labelOldRPCSystem
	labelRPCService
	labelRPCMethod
	labelPeerService
	labelServerAddress
	labelOldPeerName
	labelOldHostName
	labelFaaSProvider
	labelFaaSName
	labelFaaSTrigger
	labelGraphQLType
	labelProtocol
	fixedLabels
)

// attributeNames are the names of the attributes above.
var attributeNames = [fixedLabels]string{
	labelHTTPMethod: "http.request.method", labelOldHTTPMethod: "http.method", labelHTTPRoute: "http.route",
	labelHTTPStatus: "http.response.status_code", labelOldHTTPStatus: "http.status_code",
	labelGRPCStatus: "rpc.grpc.status_code", labelRPCStatus: "rpc.response.status_code",
	labelDBSystem: "db.system.name", labelOldDBSystem: "db.system", labelDBNamespace: "db.namespace", labelOldDBNamespace: "db.name",
	labelDBCollection: "db.collection.name", labelOldDBCollection: "db.sql.table",
	labelDBOperation: "db.operation.name", labelOldDBOperation: "db.operation",
	labelMessagingSystem: "messaging.system", labelMessagingDestination: "messaging.destination.name",
	labelOldMessagingDestination: "messaging.destination", labelMessagingOperation: "messaging.operation.name",
	labelMessagingOperationType: "messaging.operation.type", labelOldMessagingOperation: "messaging.operation",
	labelRPCSystem: "rpc.system.name", labelOldRPCSystem: "rpc.system", labelRPCService: "rpc.service", labelRPCMethod: "rpc.method",
	labelPeerService: "peer.service", labelServerAddress: "server.address", labelOldPeerName: "net.peer.name", labelOldHostName: "net.host.name",
	labelFaaSProvider: "faas.invoked_provider", labelFaaSName: "faas.invoked_name", labelFaaSTrigger: "faas.trigger",
	labelGraphQLType: "graphql.operation.type", labelProtocol: "network.protocol.name",
}

// oldLabels are the labels that are the older name of the one before.
var oldLabels = labelsIn(
	labelOldHTTPMethod, labelOldHTTPStatus, labelOldDBSystem, labelOldDBNamespace, labelOldDBCollection, labelOldDBOperation,
	labelOldMessagingDestination, labelOldMessagingOperation, labelOldRPCSystem,
)

// tagLabels are the labels that are peer tags, in the order of their names.
var tagLabels = [...]label{
	labelDBCollection, labelDBNamespace, labelDBOperation, labelDBSystem,
	labelMessagingDestination, labelMessagingOperation, labelMessagingOperationType, labelMessagingSystem,
	labelPeerService, labelRPCMethod, labelRPCService, labelRPCSystem, labelServerAddress,
}

// The attributes of a resource that an origin is made of.
const (
	labelService = iota + fixedLabels
	labelServiceVersion
	labelInstance
	labelEnvironment
	labelOldEnvironment
	labelHost
	labelContainer
	labelLanguage
	labelSDKVersion
	labelRuntimeName
	labelRuntimeVersion
	labelCommit
	ownLabels // of those, of a span or its resource, that an operator names
)

// resourceNames are the names of the attributes above.
var resourceNames = [ownLabels]string{
	labelService: "service.name", labelServiceVersion: "service.version", labelInstance: "service.instance.id",
	labelEnvironment: "deployment.environment.name", labelOldEnvironment: "deployment.environment",
	labelHost: "host.name", labelContainer: "container.id",
	labelLanguage: "telemetry.sdk.language", labelSDKVersion: "telemetry.sdk.version",
	labelRuntimeName: "process.runtime.name", labelRuntimeVersion: "process.runtime.version",
	labelCommit: "vcs.ref.head.revision",
}

// maxLabels bounds them, and with them what an operator may ask for.
const maxLabels = 256

// labelSet is a set of labels.
type labelSet [maxLabels / 64]uint64

func labelsIn(all ...label) (s labelSet) {
	for _, l := range all {
		s.add(l)
	}
	return s
}

func (s *labelSet) add(l label)      { s[l>>6] |= 1 << (l & 63) }
func (s *labelSet) has(l label) bool { return s[l>>6]&(1<<(l&63)) != 0 }
