package otel

import (
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

// addMeasures adds a rule for each measure to the policy. It adds a label to names for
// each measured attribute that has none.
func (p *Policy) addMeasures(measures []measure.Measure, names *labelNames) {
	for _, m := range measures {
		distinguishesErrors := m.HasLabel("status.code")
		rule := measureRule{kinds: m.Kinds, keepsError: distinguishesErrors}
		if m.Kinds == 0 {
			rule.kinds = anyKind
		}
		for _, attribute := range m.Attributes {
			label := names.findOrAdd(attribute)
			rule.attributes = append(rule.attributes, label)
			p.measured.Add(label)
		}
		if m.Requires != "" {
			rule.requires = names.findOrAdd(m.Requires)
			p.measured.Add(rule.requires)
		}
		needsNoAttribute := m.IsDuration() && m.Requires == ""
		if needsNoAttribute {
			p.measuresAnySpan = true
		}
		p.measures = append(p.measures, rule)
	}
}

// addValues adds the values that s has according to the configured measures to the batch with the given number. s must be
// the last span that was added to this batch.
func (c *Counter) addValues(batchNumber int, s *spantable.Span) {
	mayHaveValues := c.selectMeasuredAttributes(s)
	if !mayHaveValues {
		return
	}
	for i := range c.keys.policy.measures {
		rule := &c.keys.policy.measures[i]
		amount, hasValue := c.amountOf(s, rule)
		if !hasValue {
			continue
		}
		measureNumber := span.Measure(i + 1) // 0 stands for no measure
		value := span.Value{Measure: measureNumber, Amount: amount}
		if rule.keepsError && s.Status == spantable.StatusError {
			value.Flags = span.Error
		}
		c.batches.AddValue(batchNumber, value)
	}
}

// selectMeasuredAttributes makes s the selected span, whose attributes amountOf reads. It selects only attributes that
// a measure needs. mayHaveValues is false if s has none of them and no measure counts spans without attributes.
func (c *Counter) selectMeasuredAttributes(s *spantable.Span) (mayHaveValues bool) {
	k := &c.keys
	k.selected.Set = spantable.LabelSet{}
	hasMeasuredAttribute := false
	for i := s.TagStart; i < s.TagEnd; i++ {
		isMeasured := k.policy.measured.Has(k.request.Tags[i].Label)
		if isMeasured {
			k.selected.AddMissing(&k.request.Table, i, i+1) // only this tag
			hasMeasuredAttribute = true
		}
	}
	return hasMeasuredAttribute || k.policy.measuresAnySpan
}

// amountOf returns the amount by which s, the selected span, is counted for a measure. It returns false if s is not
// counted for the measure. If the reason is an invalid value, or that the request has too many values, amountOf counts
// it in c.refused.
func (c *Counter) amountOf(s *spantable.Span, rule *measureRule) (amount uint64, hasValue bool) {
	if !rule.kinds.Has(s.Kind) {
		return 0, false
	}
	requiresAttribute := rule.requires != spantable.Other
	if requiresAttribute && !c.keys.selected.Set.Has(rule.requires) {
		return 0, false
	}
	measuresDuration := len(rule.attributes) == 0
	if measuresDuration {
		amount = s.Duration
	} else {
		tag := c.keys.tag(rule.attributes...)
		if tag == nil {
			return 0, false
		}
		var refusal measure.Refusal
		amount, refusal = measure.AmountOf(tag)
		if refusal != measure.Counted {
			c.refused[refusal]++
			c.refusedLabel = tag.Label
			return 0, false
		}
	}
	maxValues := c.keys.request.Limits.Spans
	if c.values == maxValues {
		c.refused[measure.TooMany]++
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
