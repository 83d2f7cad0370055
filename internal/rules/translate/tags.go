package translate

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/client/rules"
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
	numberFirst                   // which package traces sees to
)

// numberRules are the tags that may be numbers.
var numberRules = func() map[string]numberRule {
	rule := map[string]numberRule{
		rules.TagMeasured: numberAlone, rules.TagTopLevel: numberAlone, rules.TagTracerTopLevel: numberAlone,
		rules.TagPartialVersion: numberAlone,
		rules.TagSampleRate:     numberAlone, rules.TagHTTPStatus: numberFirst,
		rules.TagOTelHTTPStatus: numberFirst,
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
