package ignore

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// The bounds of a list.
const (
	MaxRules = 32
	MaxBytes = 1000 // of a rule
	MaxValue = 1000 // of an attribute's value; a rule sees no more of it
)

// attributePrefix begins the field of a rule that asks for an attribute.
const attributePrefix = "attribute."

// rule is one field, and the values of it that are ignored.
type rule struct {
	label     span.Label // span.WholeKey where no label says it
	attribute string     // empty where the rule asks for a label by its own name
	value     string
	pattern   *regexp.Regexp // nil where the value must be equal
}

// parse reads a rule: field=value, or field=~pattern.
func parse(text string) (r rule, err error) {
	field, value, isRule := strings.Cut(text, "=")
	if !isRule || value == "" || len(text) > MaxBytes {
		return r, fmt.Errorf("parse --ignore: %.100q is not field=value or field=~pattern in %d bytes; "+
			"fields are %s, and attribute.NAME", text, MaxBytes, fields())
	}
	name, isAttribute := strings.CutPrefix(field, attributePrefix)
	var known bool
	switch r.label, known = labelOf(name, isAttribute); {
	case isAttribute && name != "":
		r.attribute = name
	case isAttribute || !known || r.label >= span.FirstList && r.label < span.EndOfLists:
		return r, fmt.Errorf("parse --ignore: %q is no field; give one of %s, or attribute.NAME", field,
			fields())
	}
	if r.value = value; value[0] != '~' {
		return r, nil
	}
	if r.pattern, err = regexp.Compile(value[1:]); err != nil {
		return r, fmt.Errorf("parse --ignore %s: %w; a pattern is written as RE2 has it", field, err)
	}
	return r, nil
}

// matches says whether the rule is about a value. An absent one is none.
func (r *rule) matches(value string) bool {
	switch {
	case value == "":
		return false
	case r.pattern != nil:
		return r.pattern.MatchString(value)
	}
	return value == r.value
}

// labelsOf are the attributes that a key has as labels, by the names that they have in OpenTelemetry.
var labelsOf = map[string]span.Label{
	"http.request.method": span.LabelHTTPMethod, "http.method": span.LabelHTTPMethod,
	"http.route": span.LabelHTTPEndpoint, "http.endpoint": span.LabelHTTPEndpoint,
	"http.response.status_code": span.LabelHTTPStatus, "http.status_code": span.LabelHTTPStatus,
	"rpc.grpc.status_code": span.LabelGRPCStatus, "span.kind": span.LabelKind,
}

// labelOf is the label that a field or an attribute is.
func labelOf(name string, isAttribute bool) (span.Label, bool) {
	if isAttribute || name == "span.kind" {
		if l, known := labelsOf[name]; known {
			return l, true
		}
		return span.WholeKey, false
	}
	return span.ParseLabel(name)
}

// fields are the names of the labels that a rule may ask for.
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
