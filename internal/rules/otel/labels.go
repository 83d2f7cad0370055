package otel

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Attributes of a span that labels are made of. Attributes with the same meaning are adjacent, the
// current name first.
const (
	labelHTTPMethod spantable.Label = iota + 1
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
	labelGenAIOperation
	labelGenAIProvider
	labelOldGenAISystem
	labelGenAIModel
	labelGenAIResponseModel
	fixedLabels
)

// attributeNames contains the names of the attributes above.
var attributeNames = [fixedLabels]string{
	labelHTTPMethod:              "http.request.method",
	labelOldHTTPMethod:           "http.method",
	labelHTTPRoute:               "http.route",
	labelHTTPStatus:              "http.response.status_code",
	labelOldHTTPStatus:           "http.status_code",
	labelGRPCStatus:              "rpc.grpc.status_code",
	labelRPCStatus:               "rpc.response.status_code",
	labelDBSystem:                "db.system.name",
	labelOldDBSystem:             "db.system",
	labelDBNamespace:             "db.namespace",
	labelOldDBNamespace:          "db.name",
	labelDBCollection:            "db.collection.name",
	labelOldDBCollection:         "db.sql.table",
	labelDBOperation:             "db.operation.name",
	labelOldDBOperation:          "db.operation",
	labelMessagingSystem:         "messaging.system",
	labelMessagingDestination:    "messaging.destination.name",
	labelOldMessagingDestination: "messaging.destination",
	labelMessagingOperation:      "messaging.operation.name",
	labelMessagingOperationType:  "messaging.operation.type",
	labelOldMessagingOperation:   "messaging.operation",
	labelRPCSystem:               "rpc.system.name",
	labelOldRPCSystem:            "rpc.system",
	labelRPCService:              "rpc.service",
	labelRPCMethod:               "rpc.method",
	labelPeerService:             "peer.service",
	labelServerAddress:           "server.address",
	labelOldPeerName:             "net.peer.name",
	labelOldHostName:             "net.host.name",
	labelFaaSProvider:            "faas.invoked_provider",
	labelFaaSName:                "faas.invoked_name",
	labelFaaSTrigger:             "faas.trigger",
	labelGraphQLType:             "graphql.operation.type",
	labelProtocol:                "network.protocol.name",
	labelGenAIOperation:          "gen_ai.operation.name",
	labelGenAIProvider:           "gen_ai.provider.name",
	labelOldGenAISystem:          "gen_ai.system",
	labelGenAIModel:              "gen_ai.request.model",
	labelGenAIResponseModel:      "gen_ai.response.model",
}

// oldLabels contains the labels that are the older name of the label before.
var oldLabels = spantable.LabelsOf(
	labelOldHTTPMethod, labelOldHTTPStatus, labelOldDBSystem, labelOldDBNamespace, labelOldDBCollection,
	labelOldDBOperation,
	labelOldMessagingDestination, labelOldMessagingOperation, labelOldRPCSystem, labelOldGenAISystem,
)

// keyLabels contains the labels that have a field of their own in a key.
var keyLabels = spantable.LabelsOf(
	labelHTTPMethod, labelOldHTTPMethod, labelHTTPRoute, labelHTTPStatus, labelOldHTTPStatus, labelGRPCStatus,
)

// tagLabels contains the labels that become peer tags, sorted by name.
var tagLabels = [...]spantable.Label{
	labelDBCollection, labelDBNamespace, labelDBOperation, labelDBSystem,
	labelGenAIOperation, labelGenAIProvider, labelGenAIModel, labelGenAIResponseModel,
	labelMessagingDestination, labelMessagingOperation, labelMessagingOperationType, labelMessagingSystem,
	labelPeerService, labelRPCMethod, labelRPCService, labelRPCSystem, labelServerAddress,
}

// IsDefaultLabel reports whether an attribute is a label of spans without any configuration.
func IsDefaultLabel(attribute string) bool {
	label := spantable.Label(max(0, slices.Index(attributeNames[:], attribute)))
	return keyLabels.Has(label) || slices.Contains(tagLabels[:], label)
}

// peerLabels contains the tag labels that identify the peer of a call. By default they are not read
// from a server's span: there the caller controls the values, for example with the Host header.
var peerLabels = spantable.LabelsOf(labelPeerService, labelServerAddress)

// IsTag reports whether an attribute is a label by convention that spans have as a peer tag.
func IsTag(name string) bool {
	return slices.ContainsFunc(tagLabels[:], func(label spantable.Label) bool { return attributeNames[label] == name })
}

// CanBeTag reports whether Labels.Attributes can make an attribute a tag of spans. It returns false for the older names
// of other attributes, for attributes with a field of their own in a key, and for those of the origin.
func CanBeTag(name string) bool {
	label := spantable.Label(max(0, slices.Index(attributeNames[:], name)))
	isOfOrigin := slices.Contains(resourceNames[:], name)
	return !oldLabels.Has(label) && !keyLabels.Has(label) && !isOfOrigin
}

// workAttributes contains, for each attribute of package work, the labels to read it from, in order
// of preference. attributes.Value has those of work.MessagingOperation.
var workAttributes = [work.Attributes][]spantable.Label{
	work.HTTPMethod: {labelHTTPMethod, labelOldHTTPMethod}, work.DBSystem: {labelDBSystem, labelOldDBSystem},
	work.MessagingSystem: {labelMessagingSystem},
	work.RPCSystem:       {labelRPCSystem, labelOldRPCSystem}, work.RPCService: {labelRPCService},
	work.FaaSProvider: {labelFaaSProvider}, work.FaaSName: {labelFaaSName},
	work.FaaSTrigger: {labelFaaSTrigger}, work.GraphQLType: {labelGraphQLType},
	work.Protocol: {labelProtocol},
}

// Attributes of a resource that an origin is made of, followed by the attributes of a span that only its
// name is made of. The latter are labels from nameLabels to ownLabels.
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
	labelURLTemplate
	labelURLPath
	labelZipkinPath
	labelOldHTTPTarget
	labelURLFull
	labelOldHTTPURL
	labelServerPort
	labelOldPeerPort
	labelDBSummary
	labelDBProcedure
	labelMongoDBCollection
	labelCassandraTable
	labelDBQuery
	labelOldDBStatement
	labelMessagingTemplate
	labelMessagingTemporary
	labelOldMessagingTemporary
	labelMessagingAnonymous
	labelMCPMethod
	labelGenAITool
	labelGenAIAgent
	labelGenAIWorkflow
	labelGenAIDataSource
	labelGenAIPrompt
	ownLabels // first label of attributes that an operator named

	nameLabels = labelURLTemplate
)

// resourceNames contains the names of the attributes of a resource.
var resourceNames = [ownLabels]string{
	labelService: "service.name", labelServiceVersion: "service.version",
	labelInstance:    "service.instance.id",
	labelEnvironment: "deployment.environment.name", labelOldEnvironment: "deployment.environment",
	labelHost: "host.name", labelContainer: "container.id",
	labelLanguage: "telemetry.sdk.language", labelSDKVersion: "telemetry.sdk.version",
	labelRuntimeName: "process.runtime.name", labelRuntimeVersion: "process.runtime.version",
	labelCommit: "vcs.ref.head.revision",
}

// nameAttributes contains the names of the attributes that only names are made of.
var nameAttributes = [ownLabels]string{
	labelURLTemplate: "url.template", labelURLPath: "url.path", labelZipkinPath: "http.path",
	labelOldHTTPTarget: "http.target", labelURLFull: "url.full", labelOldHTTPURL: "http.url",
	labelServerPort: "server.port", labelOldPeerPort: "net.peer.port",
	labelDBSummary: "db.query.summary", labelDBProcedure: "db.stored_procedure.name",
	labelMongoDBCollection: "db.mongodb.collection", labelCassandraTable: "db.cassandra.table",
	labelDBQuery: "db.query.text", labelOldDBStatement: "db.statement",
	labelMessagingTemplate:  "messaging.destination.template",
	labelMessagingTemporary: "messaging.destination.temporary", labelOldMessagingTemporary: "messaging.temp_destination",
	labelMessagingAnonymous: "messaging.destination.anonymous",
	labelMCPMethod:          "mcp.method.name",
	labelGenAITool:          "gen_ai.tool.name", labelGenAIAgent: "gen_ai.agent.name",
	labelGenAIWorkflow: "gen_ai.workflow.name", labelGenAIDataSource: "gen_ai.data_source.id",
	labelGenAIPrompt: "gen_ai.prompt.name",
}
