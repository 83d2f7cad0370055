package ignore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// List is rules, each of which is enough for a span to be ignored. A nil list has none.
type List struct{ rules []rule }

// Parse reads rules, one a line of each text. It returns all that is wrong, and nil where there is no rule.
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
		return nil, fmt.Errorf("parse --ignore: there are %d rules, at most %d; "+
			"put several into one pattern, as resource=~^GET /(healthz|readyz)$", len(l.rules), MaxRules)
	}
	if len(l.rules) == 0 {
		return nil, nil
	}
	return l, nil
}

// Key says whether spans with a key are ignored. The key is as the statistics show it.
func (l *List) Key(k *span.Key) bool {
	if l == nil {
		return false
	}
	return slices.ContainsFunc(l.rules, func(r rule) bool { return r.key(k) })
}

func (r *rule) key(k *span.Key) bool {
	switch {
	case r.label == span.LabelHTTPStatus:
		return k.HTTPStatus != 0 && r.matches(strconv.FormatUint(uint64(k.HTTPStatus), 10))
	case r.label < span.FirstList:
		return r.matches(*k.Text(r.label))
	}
	is := func(tag string) bool {
		name, value, _ := strings.Cut(tag, ":")
		return name == r.attribute && r.matches(value)
	}
	return slices.ContainsFunc(k.PeerTags, is) || slices.ContainsFunc(k.AdditionalTags, is)
}

// Attributes are the names of those that some rule asks for, each once.
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

// Attribute reports whether spans are ignored that have an attribute with that value, of which the first
// MaxValue bytes count. A rule for equality is shorter, so a longer value never equals one.
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
