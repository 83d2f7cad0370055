package otel

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// measureRule decides which spans have a value of a measure.
type measureRule struct {
	attributes []spantable.Label // the value is that of the first one that a span has; empty for the duration
	requires   spantable.Label   // attribute that a span must have; spantable.Other for none
	kinds      spantable.KindSet // kinds of spans with values
	keepsError bool              // values of spans with an error are counted apart from the others
}

// addMeasures adds the rules for measures to the policy. It returns names and inResource, the names of the attributes
// that are read from spans and resources by label, with the measured attributes. These are read from spans only.
func (p *Policy) addMeasures(all []measure.Measure, names, inResource []string) (newNames, newInResource []string) {
	labelOf := func(name string) spantable.Label {
		label := slices.Index(names, name)
		if label < 0 {
			label = len(names)
			names, inResource = append(names, name), append(inResource, "")
		}
		p.measured.Add(spantable.Label(label))
		return spantable.Label(label)
	}
	for _, m := range all {
		rule := measureRule{kinds: m.Kinds, keepsError: m.HasLabel("status.code")}
		if m.Kinds == 0 {
			rule.kinds = anyKind
		}
		for _, name := range m.Attributes {
			rule.attributes = append(rule.attributes, labelOf(name))
		}
		if m.Requires != "" {
			rule.requires = labelOf(m.Requires)
		}
		p.measuresAll = p.measuresAll || m.IsDuration() && m.Requires == ""
		p.measures = append(p.measures, rule)
	}
	return names, inResource
}

// addValues adds the values of a span, which was added last to the batch with the given number. isError reports whether
// the span has an error.
func (c *Counter) addValues(batch int, s *spantable.Span, isError bool) {
	if !c.selectMeasured(s) {
		return
	}
	for i := range c.keys.policy.measures {
		rule := &c.keys.policy.measures[i]
		amount, hasValue := c.amountOf(s, rule)
		if !hasValue {
			continue
		}
		value := span.Value{Measure: span.Measure(i + 1), Amount: amount}
		if isError && rule.keepsError {
			value.Flags = span.Error
		}
		c.batches.AddValue(batch, value)
	}
}

// selectMeasured selects the measured attributes of a span, and no others. It returns false if the span can't have a
// value, as most spans.
func (c *Counter) selectMeasured(s *spantable.Span) (mayHaveValues bool) {
	k := &c.keys
	k.selected.Set = spantable.LabelSet{}
	mayHaveValues = k.policy.measuresAll
	for i := s.TagStart; i < s.TagEnd; i++ {
		if k.policy.measured.Has(k.request.Tags[i].Label) {
			k.selected.AddMissing(&k.request.Table, i, i+1)
			mayHaveValues = true
		}
	}
	return mayHaveValues
}

// amountOf returns the amount by which a span, the selected one, is counted according to a rule. It returns false if the
// span has no value. If it has an invalid one, amountOf counts the reason.
func (c *Counter) amountOf(s *spantable.Span, rule *measureRule) (amount uint64, hasValue bool) {
	isRequiredMissing := rule.requires != spantable.Other && !c.keys.selected.Set.Has(rule.requires)
	if isRequiredMissing || !rule.kinds.Has(s.Kind) {
		return 0, false
	}
	refusal := measure.Counted
	if len(rule.attributes) == 0 {
		amount = s.Duration
	} else {
		tag := c.keys.tag(rule.attributes...)
		if tag == nil {
			return 0, false
		}
		amount, refusal = measure.AmountOf(tag)
		if refusal != measure.Counted {
			c.refusedLabel = tag.Label
		}
	}
	if refusal == measure.Counted && c.values == c.keys.request.Limits.Spans {
		refusal = measure.TooMany
	}
	if refusal != measure.Counted {
		c.refused[refusal]++
		return 0, false
	}
	c.values++
	return amount, true
}

// RefusedValues returns the number of values in the last body that are not counted, by reason, and the name of an
// attribute that has one of them.
func (c *Counter) RefusedValues() (refused [measure.Refusals]uint64, attribute string) {
	return c.refused, c.keys.policy.names.Name(c.refusedLabel)
}
