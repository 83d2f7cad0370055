// Package measure defines measures: numeric attributes of spans whose values are added up in histograms, next to the
// durations of the spans. It parses --measure, has the presets, and converts values.
//
// A value is counted like a duration: a value of 1 like a duration of one second, with a resolution of one
// nanosecond. So a sum of integers is exact as long as it is below 4.6 billion per series and interval: the amounts of
// integers are multiples of 2^9, and a float64 adds multiples of 2^9 exactly up to 2^62. Other values are rounded to a
// billionth. A larger sum has the precision of a float64, 16 digits.
//
// All values are immutable.
package measure

import (
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Measure is a numeric attribute of spans, and the metric that counts its values.
type Measure struct {
	Name string // name of the metric
	Unit string // UCUM unit of the values, such as By or {token}
	Help string

	// Attributes are the names of the attribute, the current one first. A span has at most one value, that of the first
	// name that it has. If there are none, the value is the duration of the span in seconds.
	Attributes []string
	Requires   string            // attribute that a span must have to have a value; optional
	Kinds      spantable.KindSet // kinds of spans that have values; 0 for all

	Labels []string // labels of the span that the metric has; nil for all of them
	Label  Label    // label that all values have; optional
	Bounds []float64
}

// Label is a label with its value.
type Label struct{ Name, Value string }

// IsDuration reports whether the values are the durations of spans.
func (m *Measure) IsDuration() bool { return len(m.Attributes) == 0 }

// HasLabel reports whether the metric has a label of the span.
func (m *Measure) HasLabel(name string) bool {
	return m.Labels == nil || slices.Contains(m.Labels, name)
}

// Labels returns the names of all labels that measures name, without those that every span has.
func Labels(measures []Measure) (names []string) {
	for i := range measures {
		for _, name := range measures[i].Labels {
			if !slices.Contains(names, name) && !slices.Contains(commonLabels, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// commonLabels are the labels that are not attributes of spans.
var commonLabels = []string{"service.name", "span.name", "span.kind", "status.code"}

// Refusal is the reason why the value of a measured attribute is not counted.
type Refusal uint8

// The reasons. Names has their names in metrics.
const (
	Counted    Refusal = iota // it is counted
	NotANumber                // a text, even if it contains a number, a boolean, a list, or NaN
	Negative
	TooLarge // more than MaxValue
	TooMany  // more values in a request than permitted for its length
	Refusals // number of reasons
)

// RefusalNames are the names of the reasons in metrics.
var RefusalNames = [Refusals]string{NotANumber: "not_a_number", Negative: "negative", TooLarge: "too_large", TooMany: "too_many"}

// RefusalRemedies say, for each reason, how the sender can have its values counted.
var RefusalRemedies = [Refusals]string{
	NotANumber: "send a number as an integer or a double", Negative: "send numbers from 0",
	TooLarge: "send numbers up to 18446744073", TooMany: "send fewer spans with values in a request",
}

// MaxValue is the maximum value of an attribute: the longest duration in seconds.
const MaxValue = math.MaxUint64 / unit

// unit is the amount of the value 1, like the nanoseconds of a second.
const unit = 1_000_000_000

// AmountOf returns the amount by which the value of an attribute is counted, or the reason why it is not counted.
func AmountOf(t *spantable.Tag) (amount uint64, refusal Refusal) {
	switch t.Type {
	case spantable.TypeInteger:
		return amountOfInteger(int64(t.Bits))
	case spantable.TypeNumber:
		return amountOfNumber(math.Float64frombits(t.Bits))
	}
	return 0, NotANumber
}

func amountOfInteger(n int64) (amount uint64, refusal Refusal) {
	switch {
	case n < 0:
		return 0, Negative
	case n > MaxValue:
		return 0, TooLarge
	}
	return uint64(n) * unit, Counted
}

func amountOfNumber(n float64) (amount uint64, refusal Refusal) {
	switch {
	case math.IsNaN(n):
		return 0, NotANumber
	case n < 0:
		return 0, Negative
	case n > MaxValue:
		return 0, TooLarge
	}
	return uint64(math.Round(n * unit)), Counted
}
