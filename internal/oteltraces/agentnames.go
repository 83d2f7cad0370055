package oteltraces

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// The attributes that the agent's ingest reads of a span, or of its resource, to name it.
const (
	agentService label = iota + 1
	agentOperation
	agentResource
	agentType
	agentHTTPMethod
	agentOldHTTPMethod
	agentTemplate
	agentRoute
	agentDBSystem
	agentOldDBSystem
	agentStatement
	agentQuery
	agentNamespace
	agentMessaging
	agentMessagingOperation
	agentDestination
	agentDestinationName
	agentRPCSystem
	agentRPCSystemName
	agentRPCService
	agentRPCMethod
	agentProvider
	agentInvoked
	agentTrigger
	agentGraphQLType
	agentGraphQLName
	agentProtocol
	agentEnvironment
	agentOldEnvironment
	agentVersion
	agentContainer
	agentLanguage
	agentSDKVersion
	agentHTTPStatus
	agentNewHTTPStatus
	agentGRPCStatus // and the four after it, in the order in which the agent asks for them
	_
	_
	_
	agentRPCStatus
	agentMeasured
	agentSampleRate
	agentComputed
	agentHost // what the name of a host is found by, in a resource alone
	agentDatadogHost
	agentLaunchType
	agentCloud
	agentPlatform
	agentNode
	agentCluster
	agentHostID
	agentHostName
	agentAccount
	agentLabels
)

// agentNames are their names.
var agentNames = [agentLabels]string{
	agentService: "service.name", agentOperation: "operation.name", agentResource: "resource.name", agentType: "span.type",
	agentHTTPMethod: "http.request.method", agentOldHTTPMethod: "http.method", agentTemplate: "url.template", agentRoute: "http.route",
	agentDBSystem: "db.system.name", agentOldDBSystem: "db.system", agentStatement: "db.statement", agentQuery: "db.query.text",
	agentNamespace: "db.namespace", agentMessaging: "messaging.system", agentMessagingOperation: "messaging.operation",
	agentDestination: "messaging.destination", agentDestinationName: "messaging.destination.name",
	agentRPCSystem: "rpc.system", agentRPCSystemName: "rpc.system.name", agentRPCService: "rpc.service", agentRPCMethod: "rpc.method",
	agentProvider: "faas.invoked_provider", agentInvoked: "faas.invoked_name", agentTrigger: "faas.trigger",
	agentGraphQLType: "graphql.operation.type", agentGraphQLName: "graphql.operation.name", agentProtocol: "network.protocol.name",
	agentEnvironment: "deployment.environment.name", agentOldEnvironment: "deployment.environment", agentVersion: "service.version",
	agentContainer: "container.id", agentLanguage: "telemetry.sdk.language", agentSDKVersion: "telemetry.sdk.version",
	agentHTTPStatus: "http.status_code", agentNewHTTPStatus: "http.response.status_code",
	agentGRPCStatus: "rpc.grpc.status_code", agentGRPCStatus + 1: "grpc.code", agentGRPCStatus + 2: "rpc.grpc.status.code",
	agentGRPCStatus + 3: "grpc.status.code", agentRPCStatus: "rpc.response.status_code",
	agentMeasured: "_dd.measured", agentSampleRate: "_sample_rate",
	agentComputed: statsComputed, agentHost: "host", agentDatadogHost: "datadog.host.name", agentLaunchType: "aws.ecs.launchtype",
	agentCloud: "cloud.provider", agentPlatform: "cloud.platform", agentNode: "k8s.node.name", agentCluster: "k8s.cluster.name",
	agentHostID: "host.id", agentHostName: "host.name", agentAccount: "cloud.account.id",
}

// agentHTTPTags are the agent's names for attributes of OpenTelemetry.
var agentHTTPTags = map[string]string{
	"client.address": "http.client_ip", "http.response.body.size": "http.response.content_length", "http.response.status_code": "http.status_code",
	"http.request.body.size": "http.request.content_length", "http.request.header.referrer": "http.referrer", "http.request.method": "http.method",
	"http.route": "http.route", "network.protocol.version": "http.version", "server.address": "http.server_name", "url.full": "http.url",
	"user_agent.original": "http.useragent",
}

// numberRule says which value of a tag statistics are made of, where it may be a number.
type numberRule uint8

const (
	textAlone   numberRule = iota // as of nearly all
	textFirst                     // the number where there is no text
	numberAlone                   //
	numberFirst                   // which package traces sees to
)

// numberRules are the tags that may be numbers.
var numberRules = func() map[string]numberRule {
	rule := map[string]numberRule{
		rules.TagMeasured: numberAlone, rules.TagTopLevel: numberAlone, rules.TagTracerTopLevel: numberAlone, rules.TagPartialVersion: numberAlone,
		rules.TagSampleRate: numberAlone, rules.TagHTTPStatus: numberFirst, rules.TagOTelHTTPStatus: numberFirst,
	}
	for _, name := range rules.GRPCStatusTags {
		rule[name] = textFirst
	}
	return rule
}()

// agentTag is the tag that an attribute becomes, empty where it becomes none.
func agentTag(attribute string) string {
	if tag, known := agentHTTPTags[attribute]; known {
		return tag
	}
	if header, is := strings.CutPrefix(attribute, "http.request.header."); is {
		return "http.request.headers." + header
	}
	switch attribute {
	case "service.name", "operation.name", "resource.name", "span.type":
		return ""
	}
	return attribute
}

// sourcesOf are the attributes that become a tag.
func sourcesOf(tag string) (all []string) {
	if agentTag(tag) == tag {
		all = append(all, tag)
	}
	if header, is := strings.CutPrefix(tag, "http.request.headers."); is {
		all = append(all, "http.request.header."+header)
	}
	for attribute, becomes := range agentHTTPTags {
		if becomes == tag && attribute != tag {
			all = append(all, attribute)
		}
	}
	return all
}
