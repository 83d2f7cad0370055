package ignore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// List is a list of rules. A span is ignored if any of them matches. A nil List ignores nothing.
type List struct{ rules []rule }

// Parse parses texts with one rule per line, and skips empty lines. It returns the first error, or a nil
// List if there are no rules.
func Parse(texts []string) (*List, error) {
	l := &List{}
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			r, err := parse(line)
			if err != nil {
				return nil, err
			}
			l.rules = append(l.rules, r)
		}
	}
	if len(l.rules) > MaxRules {
		return nil, fmt.Errorf("parse --ignore: %d rules exceed the maximum of %d; combine several in one "+
			"pattern, such as resource=~^GET /(healthz|readyz)$", len(l.rules), MaxRules)
	}
	if len(l.rules) == 0 {
		return nil, nil
	}
	return l, nil
}

// Key reports whether spans with this key are ignored. The key must be normalized.
func (l *List) Key(k *span.Key) bool {
	if l == nil {
		return false
	}
	return slices.ContainsFunc(l.rules, func(r rule) bool { return r.matchesKey(k) })
}

// matchesKey reports whether the key has a label or a tag that the rule matches. Attributes that are not labels can
// be in the key as peer tags or additional tags.
func (r *rule) matchesKey(k *span.Key) bool {
	switch {
	case r.label == span.LabelHTTPStatus:
		return k.HTTPStatus != 0 && r.matches(strconv.FormatUint(uint64(k.HTTPStatus), 10))
	case r.label < span.FirstList:
		return r.matches(*k.Text(r.label))
	}
	matchesTag := func(tag string) bool {
		name, value, _ := strings.Cut(tag, ":")
		return name == r.attribute && r.matches(value)
	}
	return slices.ContainsFunc(k.PeerTags, matchesTag) || slices.ContainsFunc(k.AdditionalTags, matchesTag)
}

// Attributes returns the names of all attributes that rules refer to, without duplicates.
func (l *List) Attributes() (names []string) {
	if l == nil {
		return nil
	}
	for i := range l.rules {
		if name := l.rules[i].attribute; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Attribute reports whether spans with this attribute are ignored. It reads only the first MaxValue bytes
// of the value. A rule without a pattern never matches a longer value, because its own value is shorter.
func (l *List) Attribute(name, value string) bool {
	if l == nil {
		return false
	}
	value = span.Shorten(value, MaxValue)
	for i := range l.rules {
		if r := &l.rules[i]; r.attribute == name && r.matches(value) {
			return true
		}
	}
	return false
}
