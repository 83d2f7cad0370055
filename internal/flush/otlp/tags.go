package otlp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// tag is one attribute that a tracer or an operator chose.
type tag struct{ name, value string }

// isStatus says whether it is the status of a span, which has an attribute of its own.
func (t tag) isStatus() bool { return t.name+":"+t.value == span.StatusOK }

// tagList is the tags of a key as attributes.
type tagList []tag

// add adds the tags of a list that are dimensions, by OpenTelemetry's names for them.
func (t tagList) add(list []string, wanted *Dimensions) tagList {
	for _, text := range list {
		key, value, isTag := strings.Cut(text, ":")
		if name := attributeName(key); isTag && wanted.has(name) {
			t = append(t, tag{name, value})
		}
	}
	return t
}

// write writes them in the order of their names, so that two keys with the same tags are
// one series, whatever their tags were called before.
func (t tagList) write(to *attributes) {
	slices.SortFunc(t, func(a, b tag) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value)) })
	for _, tag := range t {
		to.text(tag.name, tag.value)
	}
}
