package translate

import (
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// The attributes that the agent's ingest reads of a span, or of its resource, to name it.
const (
	attrService spantable.Label = iota + 1
	attrOperation
	attrResource
	attrType
	attrHTTPMethod
	attrOldHTTPMethod
	attrTemplate
	attrRoute
	attrDBSystem
	attrOldDBSystem
	attrStatement
	attrQuery
	attrNamespace
	attrMessaging
	attrMessagingOperation
	attrDestination
	attrDestinationName
	attrRPCSystem
	attrRPCSystemName
	attrRPCService
	attrRPCMethod
	attrProvider
	attrInvoked
	attrTrigger
	attrGraphQLType
	attrGraphQLName
	attrProtocol
	attrEnvironment
	attrOldEnvironment
	attrVersion
	attrContainer
	attrLanguage
	attrSDKVersion
	attrHTTPStatus
	attrNewHTTPStatus
	attrGRPCStatus // and the four after it, in the order in which the agent asks for them
	_
	_
	_
	attrRPCStatus
	attrMeasured
	attrSampleRate
	attrComputed
	attrHost // what the name of a host is found by, in a resource alone
	attrDatadogHost
	attrLaunchType
	attrCloud
	attrPlatform
	attrNode
	attrCluster
	attrHostID
	attrHostName
	attrAccount
	attrCount
)

// attrNames are their names.
var attrNames = [attrCount]string{
	attrService: "service.name", attrOperation: "operation.name", attrResource: "resource.name",
	attrType:       "span.type",
	attrHTTPMethod: "http.request.method", attrOldHTTPMethod: "http.method", attrTemplate: "url.template",
	attrRoute:    "http.route",
	attrDBSystem: "db.system.name", attrOldDBSystem: "db.system", attrStatement: "db.statement",
	attrQuery:     "db.query.text",
	attrNamespace: "db.namespace", attrMessaging: "messaging.system",
	attrMessagingOperation: "messaging.operation",
	attrDestination:        "messaging.destination", attrDestinationName: "messaging.destination.name",
	attrRPCSystem: "rpc.system", attrRPCSystemName: "rpc.system.name", attrRPCService: "rpc.service",
	attrRPCMethod: "rpc.method",
	attrProvider:  "faas.invoked_provider", attrInvoked: "faas.invoked_name", attrTrigger: "faas.trigger",
	attrGraphQLType: "graphql.operation.type", attrGraphQLName: "graphql.operation.name",
	attrProtocol:    "network.protocol.name",
	attrEnvironment: "deployment.environment.name", attrOldEnvironment: "deployment.environment",
	attrVersion:   "service.version",
	attrContainer: "container.id", attrLanguage: "telemetry.sdk.language",
	attrSDKVersion: "telemetry.sdk.version",
	attrHTTPStatus: "http.status_code", attrNewHTTPStatus: "http.response.status_code",
	attrGRPCStatus: "rpc.grpc.status_code", attrGRPCStatus + 1: "grpc.code",
	attrGRPCStatus + 2: "rpc.grpc.status.code",
	attrGRPCStatus + 3: "grpc.status.code", attrRPCStatus: "rpc.response.status_code",
	attrMeasured: "_dd.measured", attrSampleRate: "_sample_rate",
	attrComputed: otlp.StatsComputed, attrHost: "host", attrDatadogHost: "datadog.host.name",
	attrLaunchType: "aws.ecs.launchtype",
	attrCloud:      "cloud.provider", attrPlatform: "cloud.platform", attrNode: "k8s.node.name",
	attrCluster: "k8s.cluster.name",
	attrHostID:  "host.id", attrHostName: "host.name", attrAccount: "cloud.account.id",
}

// workAttributes are those that a kind of work is named by, each by its present and its older name.
var workAttributes = [work.Attributes][2]spantable.Label{
	work.HTTPMethod: {attrHTTPMethod, attrOldHTTPMethod}, work.DBSystem: {attrDBSystem, attrOldDBSystem},
	work.MessagingSystem: {attrMessaging}, work.MessagingOperation: {attrMessagingOperation},
	work.RPCSystem: {attrRPCSystem}, work.RPCService: {attrRPCService}, work.FaaSProvider: {attrProvider},
	work.FaaSName: {attrInvoked}, work.FaaSTrigger: {attrTrigger}, work.GraphQLType: {attrGraphQLType},
	work.Protocol: {attrProtocol},
}
