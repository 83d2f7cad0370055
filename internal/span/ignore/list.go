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

// Parse parses texts with one rule per line, such as resource=GET /healthz, and skips empty lines. It
// returns an error if a rule is invalid or there are more than MaxRules. Without rules, it returns nil,
// a List that ignores nothing.
func Parse(texts []string) (*List, error) {
	l := &List{}
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			r, err := parseRule(line)
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

// MatchesKey reports whether spans with this key are ignored. The key must be normalized.
func (l *List) MatchesKey(k *span.Key) bool {
	if l == nil {
		return false
	}
	return slices.ContainsFunc(l.rules, func(r rule) bool { return r.matchesKey(k) })
}

// matchesKey reports whether the rule matches the key: one of its labels or, if the rule is for an attribute
// that is not a label, one of its tags.
func (r *rule) matchesKey(k *span.Key) bool {
	switch {
	case r.label.IsText():
		return r.matches(*k.Text(r.label))
	case r.label == span.LabelHTTPStatus:
		return r.matchesStatus(k.HTTPStatus)
	}
	return slices.ContainsFunc(k.PeerTags, r.matchesTag) || slices.ContainsFunc(k.AdditionalTags, r.matchesTag)
}

// matchesTag reports whether tag, for example "region:eu", has the name of the rule's attribute and a matching value.
func (r *rule) matchesTag(tag string) bool {
	name, value, _ := strings.Cut(tag, ":")
	return name == r.attribute && r.matches(value)
}

// matchesStatus reports whether the rule matches an HTTP status. It returns false for 0, which means that the
// span has no status.
func (r *rule) matchesStatus(status uint32) bool {
	if status == 0 {
		return false
	}
	return r.matches(strconv.FormatUint(uint64(status), 10))
}

// AttributeNames returns the names of all attributes that rules refer to, without duplicates.
func (l *List) AttributeNames() (names []string) {
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

// MatchesAttribute reports whether a rule ignores spans with this attribute. Values that are longer
// than MaxValue bytes are truncated before the comparison.
func (l *List) MatchesAttribute(name, value string) bool {
	if l == nil {
		return false
	}
	value = span.Shorten(value, MaxValue)
	for i := range l.rules {
		r := &l.rules[i]
		if r.attribute == name && r.matches(value) {
			return true
		}
	}
	return false
}
