package ignore

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Limits of a List.
const (
	MaxRules = 32
	MaxBytes = 1000 // maximum length of a rule
	MaxValue = 1000 // maximum number of bytes of an attribute's value that rules read
)

// attributePrefix is the prefix of a rule's field that names an attribute.
const attributePrefix = "attribute."

// rule matches spans in which one label or attribute has a given value.
type rule struct {
	label     span.Label // span.WholeKey if the rule is about an attribute that is not a label
	attribute string     // name of the attribute; "" if the rule names a label
	value     string
	pattern   *regexp.Regexp // nil if the value must be equal
}

// parse parses a rule: field=value, or field=~pattern.
func parse(text string) (r rule, err error) {
	field, value, found := strings.Cut(text, "=")
	if !found || value == "" || len(text) > MaxBytes {
		return r, fmt.Errorf("parse --ignore: %.100q is not field=value or field=~pattern of at most %d bytes; "+
			"the fields are %s, and attribute.NAME", text, MaxBytes, fields())
	}
	name, isAttribute := strings.CutPrefix(field, attributePrefix)
	var isKnown bool
	r.label, isKnown = labelOf(name, isAttribute)
	isList := r.label >= span.FirstList && r.label < span.EndOfLists
	switch {
	case isAttribute && name != "":
		r.attribute = name
	case isAttribute || !isKnown || isList:
		return r, fmt.Errorf("parse --ignore: %q is not a field; give one of %s, or attribute.NAME", field,
			fields())
	}
	r.value = value
	if pattern, isPattern := strings.CutPrefix(value, "~"); isPattern {
		if r.pattern, err = regexp.Compile(pattern); err != nil {
			return r, fmt.Errorf("parse --ignore %s: %w; patterns have the RE2 syntax", field, err)
		}
	}
	return r, nil
}

// matches reports whether the label or attribute of the rule may have this value. No rule matches an empty
// value, which means that the label or attribute is absent.
func (r *rule) matches(value string) bool {
	switch {
	case value == "":
		return false
	case r.pattern != nil:
		return r.pattern.MatchString(value)
	}
	return value == r.value
}

// labelsOf maps OpenTelemetry attributes to the labels that contain their values.
var labelsOf = map[string]span.Label{
	"http.request.method": span.LabelHTTPMethod, "http.method": span.LabelHTTPMethod,
	"http.route": span.LabelHTTPEndpoint, "http.endpoint": span.LabelHTTPEndpoint,
	"http.response.status_code": span.LabelHTTPStatus, "http.status_code": span.LabelHTTPStatus,
	"rpc.grpc.status_code": span.LabelGRPCStatus, "span.kind": span.LabelKind,
}

// labelOf returns the label with the given name, and whether there is one. If isAttribute is set, name is the name of
// an attribute; if the attribute is not a label, labelOf returns span.WholeKey.
func labelOf(name string, isAttribute bool) (l span.Label, isKnown bool) {
	if !isAttribute && name != "span.kind" {
		return span.ParseLabel(name)
	}
	if l, isKnown = labelsOf[name]; isKnown {
		return l, true
	}
	return span.WholeKey, false
}

// fields lists the names of the labels that rules can use, for error messages.
func fields() string {
	var names []string
	for l := range span.WholeKey {
		switch {
		case l == span.LabelKind:
			names = append(names, "span.kind")
		case l < span.FirstList || l >= span.EndOfLists:
			names = append(names, l.String())
		}
	}
	return strings.Join(names, ", ")
}
