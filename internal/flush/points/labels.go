package points

import (
	"iter"
	"strings"
)

// labelEnd stands behind each name and value of a list of labels. It is in no UTF-8.
const labelEnd = "\xff"

// Labels goes through the labels of a list.
func Labels(list string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for list != "" {
			name, rest, _ := strings.Cut(list, labelEnd)
			value, rest, _ := strings.Cut(rest, labelEnd)
			if list = rest; !yield(name, value) {
				return
			}
		}
	}
}

// labelNames are the labels of attributes that came so far, as many as are remembered: tracers
// choose names.
type labelNames map[string]string

const mostLabelNames = 512

// of is the label of an attribute. That of a label is itself.
func (l labelNames) of(attribute string) string {
	label, known := l[attribute]
	if !known {
		label = labelOf(attribute)
		if len(l) < mostLabelNames {
			l[strings.Clone(attribute)] = label
		}
	}
	return label
}

// labelOf is the label of an attribute by Prometheus' rules, as the Collector has it. One that
// means something to Prometheus is called otherwise, or a span could spoil a scrape.
func labelOf(attribute string) string {
	label := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, attribute)
	switch {
	case strings.HasPrefix(label, "_"):
		return "key" + label
	case label == "le", label == "quantile", label != "" && label[0] <= '9':
		return "key_" + label
	}
	return label
}
