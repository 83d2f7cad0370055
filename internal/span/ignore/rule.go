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

// parseRule parses a rule: field=value, or field=~pattern. The field is the name of a label, or attribute.NAME.
func parseRule(text string) (r rule, err error) {
	field, value, found := strings.Cut(text, "=")
	if !found || value == "" || len(text) > MaxBytes {
		return r, fmt.Errorf("parse --ignore: %.100q is not field=value or field=~pattern of at most %d bytes; "+
			"the fields are %s, and attribute.NAME", text, MaxBytes, validFields())
	}
	if !r.parseField(field) {
		return r, fmt.Errorf("parse --ignore: %q is not a field; use one of %s, or attribute.NAME", field,
			validFields())
	}
	r.value = value
	if pattern, isPattern := strings.CutPrefix(value, "~"); isPattern {
		if r.pattern, err = regexp.Compile(pattern); err != nil {
			return r, fmt.Errorf("parse --ignore %s: %w; patterns have the RE2 syntax", field, err)
		}
	}
	return r, nil
}

// parseField parses the part of a rule before the operator, the name of a label or attribute.NAME. It stores
// which label or attribute the rule tests. It returns false if field is neither, or is a label that is a list
// of tags.
func (r *rule) parseField(field string) (isValid bool) {
	if name, isAttribute := strings.CutPrefix(field, attributePrefix); isAttribute {
		r.attribute = name
		r.label = labelOfAttribute(name)
		return name != ""
	}
	if field == "span.kind" {
		r.label = span.LabelKind
		return true
	}
	label, isKnown := span.ParseLabel(field)
	isList := label >= span.FirstList && label < span.EndOfLists
	if !isKnown || isList {
		return false
	}
	r.label = label
	return true
}

// matches reports whether value matches the pattern of the rule, or is equal to its value. An empty value
// never matches, because it means that the label or attribute is absent.
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

// labelOfAttribute returns the label that contains the value of an attribute. It returns span.WholeKey if no label does.
func labelOfAttribute(name string) span.Label {
	if label, isLabel := labelsOf[name]; isLabel {
		return label
	}
	return span.WholeKey
}

// validFields returns the names of the labels that rules can use, separated by commas, for error messages.
func validFields() string {
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
