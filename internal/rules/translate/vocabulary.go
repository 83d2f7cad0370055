package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// vocabulary defines which attributes are read, and which tags they become. It is immutable.
type vocabulary struct {
	ofSpans, ofResources *spantable.Names
	// Label of the tag that an attribute becomes, by the label of the attribute. tagOf is for
	// attributes of a span or a resource, scopeTagOf for attributes of a scope, which keep their names.
	tagOf, scopeTagOf [spantable.MaxLabels]spantable.Label
	rules             [spantable.MaxLabels]numberRule // by the label of a tag

	// Labels of tags that the ingest generates, or that belong to the trace.
	labels struct {
		kind, httpStatus, grpcStatus, measured, rate, version, env, dbName, origin, commit spantable.Label
	}
}

// newVocabulary returns the vocabulary for the wanted tags: the attributes to read, and the tags that
// they become. It fails if there are more than spantable.MaxLabels such attributes. A tag can be made
// from several attributes.
func newVocabulary(wanted *spantable.Names) (*vocabulary, error) {
	names := slices.Clone(attrNames[:])
	for l := 1; l < wanted.Len(); l++ {
		if wanted.Name(spantable.Label(l)) == hostTag {
			continue
		}
		for _, from := range sourcesOf(wanted.Name(spantable.Label(l))) {
			if !slices.Contains(names, from) {
				names = append(names, from)
			}
		}
	}
	if len(names) > spantable.MaxLabels {
		return nil, fmt.Errorf("translate spans for the agent: the tags need %d attributes, and the maximum is "+
			"%d; configure fewer tags", len(names), spantable.MaxLabels)
	}
	v := &vocabulary{}
	find := func(tag string) spantable.Label {
		if tag == hostTag {
			return spantable.Other
		}
		return wanted.Find([]byte(tag))
	}
	for l := 1; l < wanted.Len(); l++ {
		v.rules[l] = numberRules[wanted.Name(spantable.Label(l))]
	}
	ofSpans := slices.Clone(names)
	for l, name := range names {
		v.tagOf[l] = find(tagNameOf(name))
		v.scopeTagOf[l] = find(name)
		isTag := v.tagOf[l] != spantable.Other || v.scopeTagOf[l] != spantable.Other
		isResourceOnly := attrComputed <= spantable.Label(l) && spantable.Label(l) < attrCount
		if isResourceOnly && !isTag {
			ofSpans[l] = ""
		}
	}
	v.ofSpans, v.ofResources = spantable.NewNames(ofSpans), spantable.NewNames(names)
	v.labels.measured = find("_dd.measured")
	v.labels.rate = find("_sample_rate")
	v.labels.httpStatus = find("http.status_code")
	v.labels.grpcStatus = find("rpc.grpc.status_code")
	v.labels.dbName = find("db.name")
	v.labels.kind = find(tagKind)
	v.labels.env = find(tagEnv)
	v.labels.version = find(tagVersion)
	v.labels.origin = find(tagOrigin)
	v.labels.commit = find(tagCommit)
	return v, nil
}

// Tags that describe a span, its trace or its sender. They set fields and do not become tags of the
// span.
const (
	tagKind    = "span.kind"
	tagEnv     = "env"
	tagVersion = "version"
	tagOrigin  = "_dd.origin"
	tagCommit  = "_dd.git.commit.sha"
	hostTag    = "_dd.hostname" // host name that a tracer sends; for OTLP it comes from resource attributes
)

// httpTags maps OpenTelemetry attributes to the agent's names of tags.
var httpTags = map[string]string{
	"client.address":               "http.client_ip",
	"http.response.body.size":      "http.response.content_length",
	"http.response.status_code":    "http.status_code",
	"http.request.body.size":       "http.request.content_length",
	"http.request.header.referrer": "http.referrer",
	"http.request.method":          "http.method",
	"http.route":                   "http.route",
	"network.protocol.version":     "http.version",
	"server.address":               "http.server_name",
	"url.full":                     "http.url",
	"user_agent.original":          "http.useragent",
}

// numberRule defines which value of a tag the statistics use if the tag may be a number.
type numberRule uint8

const (
	textAlone   numberRule = iota // only the text; the rule of most tags
	textFirst                     // the text if it is not empty, otherwise the number
	numberAlone                   // only the number
	wholeFirst                    // the number if it is an integer, otherwise the text
	noTag                         // neither: the value is a field of the span or its trace
)

// numberRules is the rule of each tag that has another rule than textAlone.
var numberRules = func() map[string]numberRule {
	all := map[string]numberRule{
		rules.TagMeasured: numberAlone, rules.TagTopLevel: numberAlone, rules.TagTracerTopLevel: numberAlone,
		rules.TagPartialVersion: numberAlone,
		rules.TagSampleRate:     numberAlone, rules.TagHTTPStatus: wholeFirst,
		rules.TagOTelHTTPStatus: wholeFirst,
	}
	for _, name := range []string{tagKind, tagEnv, tagVersion, tagOrigin, tagCommit} {
		all[name] = noTag
	}
	for _, name := range rules.GRPCStatusTags {
		all[name] = textFirst
	}
	return all
}()

// tagNameOf returns the name of the Datadog tag that an OpenTelemetry attribute becomes. It returns ""
// if the attribute becomes a field of the span instead of a tag, such as service.name.
func tagNameOf(attribute string) string {
	if tag, isRenamed := httpTags[attribute]; isRenamed {
		return tag
	}
	if header, isHeader := strings.CutPrefix(attribute, "http.request.header."); isHeader {
		return "http.request.headers." + header
	}
	switch attribute {
	case "service.name", "operation.name", "resource.name", "span.type":
		return ""
	}
	return attribute
}

// sourcesOf returns the names of all attributes that become the tag with the given name.
func sourcesOf(tag string) (attributes []string) {
	if tagNameOf(tag) == tag {
		attributes = append(attributes, tag)
	}
	if header, isHeader := strings.CutPrefix(tag, "http.request.headers."); isHeader {
		attributes = append(attributes, "http.request.header."+header)
	}
	for attribute, target := range httpTags {
		if target == tag && attribute != tag {
			attributes = append(attributes, attribute)
		}
	}
	return attributes
}

// Attributes that the agent's ingest reads from a span or its resource. attrComputed and later ones
// are read only from a resource.
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
	attrGRPCStatus // the first of five, see grpcStatusAttributes
	_
	_
	_
	attrRPCStatus
	attrMeasured
	attrSampleRate
	attrComputed
	attrHost // the first of the attributes that determine the host name
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

// attrNames contains the names of the attributes above.
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

// workAttributes contains, for each attribute of package work, the current OpenTelemetry attribute and
// the deprecated one, if there is one.
var workAttributes = [work.Attributes]struct{ current, deprecated spantable.Label }{
	work.HTTPMethod:         {attrHTTPMethod, attrOldHTTPMethod},
	work.DBSystem:           {attrDBSystem, attrOldDBSystem},
	work.MessagingSystem:    {current: attrMessaging},
	work.MessagingOperation: {current: attrMessagingOperation},
	work.RPCSystem:          {current: attrRPCSystem},
	work.RPCService:         {current: attrRPCService},
	work.FaaSProvider:       {current: attrProvider},
	work.FaaSName:           {current: attrInvoked},
	work.FaaSTrigger:        {current: attrTrigger},
	work.GraphQLType:        {current: attrGraphQLType},
	work.Protocol:           {current: attrProtocol},
}
