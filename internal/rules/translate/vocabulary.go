package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// vocabulary says which attributes are read, and which tags they become. It never changes.
type vocabulary struct {
	ofSpans, ofResources *spantable.Names
	// By the label of an attribute, the label of the tag that it becomes of a span or its
	// resource, and of a scope.
	targets, plain [spantable.MaxLabels]spantable.Label
	rules          [spantable.MaxLabels]numberRule // by the label of a tag

	// The labels of tags that the ingest makes itself, or that are their trace's.
	kind, httpStatus, grpcStatus, measured, rate, version, env, dbName, origin, commit spantable.Label
}

// newVocabulary makes one of the tags that rules ask for. It needs several names for some of
// them, and fails where they are too many.
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
		return nil, fmt.Errorf("translate spans for the agent: tags need %d attributes, "+
			"at most %d can be read: ask for fewer tags", len(names), spantable.MaxLabels)
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
		v.targets[l], v.plain[l] = find(tagOf(name)), find(name)
		isOfSpans := v.targets[l] != spantable.Other || v.plain[l] != spantable.Other
		if attrComputed <= spantable.Label(l) && spantable.Label(l) < attrCount && !isOfSpans {
			ofSpans[l] = "" // a resource alone says it
		}
	}
	v.ofSpans, v.ofResources = spantable.NewNames(ofSpans), spantable.NewNames(names)
	v.measured, v.rate = find("_dd.measured"), find("_sample_rate")
	v.httpStatus, v.grpcStatus = find("http.status_code"), find("rpc.grpc.status_code")
	v.dbName, v.kind, v.env, v.version = find("db.name"), find(tagKind), find(tagEnv), find(tagVersion)
	v.origin, v.commit = find(tagOrigin), find(tagCommit)
	return v, nil
}

// The tags that say what a span is, or its trace and its sender are, and that become no tags.
const (
	tagKind    = "span.kind"
	tagEnv     = "env"
	tagVersion = "version"
	tagOrigin  = "_dd.origin"
	tagCommit  = "_dd.git.commit.sha"
	hostTag    = "_dd.hostname" // by which a tracer says its host; of OTLP a resource alone says it
)

// httpTags are the agent's names for attributes of OpenTelemetry.
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

// numberRule says which value of a tag statistics are made of, where it may be a number.
type numberRule uint8

const (
	textAlone   numberRule = iota // as of nearly all
	textFirst                     // the number where there is no text
	numberAlone                   //
	wholeFirst                    // the text where there is no whole number
	noTag                         // what is the span's kind, or its trace's
)

// numberRules are the tags that may be numbers.
var numberRules = func() map[string]numberRule {
	rule := map[string]numberRule{
		rules.TagMeasured: numberAlone, rules.TagTopLevel: numberAlone, rules.TagTracerTopLevel: numberAlone,
		rules.TagPartialVersion: numberAlone,
		rules.TagSampleRate:     numberAlone, rules.TagHTTPStatus: wholeFirst,
		rules.TagOTelHTTPStatus: wholeFirst,
	}
	for _, name := range []string{tagKind, tagEnv, tagVersion, tagOrigin, tagCommit} {
		rule[name] = noTag
	}
	for _, name := range rules.GRPCStatusTags {
		rule[name] = textFirst
	}
	return rule
}()

// tagOf is the tag that an attribute becomes, empty where it becomes none.
func tagOf(attribute string) string {
	if tag, known := httpTags[attribute]; known {
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
	if tagOf(tag) == tag {
		all = append(all, tag)
	}
	if header, is := strings.CutPrefix(tag, "http.request.headers."); is {
		all = append(all, "http.request.header."+header)
	}
	for attribute, becomes := range httpTags {
		if becomes == tag && attribute != tag {
			all = append(all, attribute)
		}
	}
	return all
}
