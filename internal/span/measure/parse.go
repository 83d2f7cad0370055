package measure

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// MaxFlags is the maximum number of --measure flags. A preset counts as one.
const MaxFlags = 8

// unknownUnit is UCUM's unit for numbers without one.
const unknownUnit = "1"

// metricName and unitText are OpenTelemetry's rules for the names and units of instruments.
var (
	metricName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]{0,254}$`)
	unitText   = regexp.MustCompile(`^[!-~]{0,63}$`)
)

// Parse parses the values of --measure flags, separated by spaces: the name of a preset, or
// NAME=ATTRIBUTE[,unit[,label...]]. The order of the result decides the number of each measure, a span.Measure. The
// error names the first invalid value.
func Parse(text string) (all []Measure, err error) {
	flags := strings.Fields(text)
	if len(flags) > MaxFlags {
		return nil, fmt.Errorf("parse --measure: %d measures exceed the maximum of %d; remove some", len(flags), MaxFlags)
	}
	for _, flag := range flags {
		parsed, err := parseFlag(flag)
		if err != nil {
			return nil, err
		}
		for _, m := range parsed {
			if slices.ContainsFunc(all, m.contradicts) {
				return nil, fmt.Errorf("parse --measure %s: another measure has the name %s; choose another name", flag, m.Name)
			}
		}
		all = append(all, parsed...)
	}
	return all, nil
}

// parseFlag parses the value of one --measure flag.
func parseFlag(flag string) ([]Measure, error) {
	if preset, isPreset := presets[flag]; isPreset {
		return preset, nil
	}
	name, rest, hasAttribute := strings.Cut(flag, "=")
	if !hasAttribute {
		return nil, fmt.Errorf("parse --measure %s: it is not one of %s; use a preset, or NAME=ATTRIBUTE[,unit[,label...]] "+
			"such as order.amount=order.total,EUR", flag, strings.Join(PresetNames(), ", "))
	}
	fields := strings.Split(rest, ",")
	attribute, unit := fields[0], unknownUnit
	if len(fields) > 1 && fields[1] != "" {
		unit = fields[1]
	}
	switch {
	case !metricName.MatchString(name):
		return nil, fmt.Errorf("parse --measure %s: %q is not the name of a metric; begin with a letter, "+
			"and use letters, digits and _ . / -", flag, name)
	case attribute == "" || len(attribute) > span.MaxLabel:
		return nil, fmt.Errorf("parse --measure %s: the name of the attribute has %d bytes; use 1 to %d", flag,
			len(attribute), span.MaxLabel)
	case !unitText.MatchString(unit):
		return nil, fmt.Errorf("parse --measure %s: %q is not a unit; use up to 63 ASCII characters such as By or {token}",
			flag, unit)
	}
	m := Measure{
		Name: name, Unit: unit, Help: "Values of the span attribute " + attribute + ".",
		Attributes: []string{attribute}, Bounds: boundsOf(unit),
	}
	if len(fields) > 2 {
		m.Labels = fields[2:]
	}
	if slices.Contains(m.Labels, "") {
		return nil, fmt.Errorf("parse --measure %s: the name of a label is empty; remove the comma", flag)
	}
	return []Measure{m}, nil
}

// contradicts reports whether two measures have the same name, although they are not parts of one metric: parts have
// different values of a label.
func (m Measure) contradicts(other Measure) bool {
	areParts := m.Label.Name != "" && m.Label.Name == other.Label.Name && m.Label.Value != other.Label.Value
	return m.Name == other.Name && !areParts
}

// boundsOf returns the upper bounds of classic buckets for values with a unit: powers of four as in the conventions for
// tokens, which also suit bytes. Seconds have the bounds that the conventions give for operations of models.
func boundsOf(unit string) []float64 {
	if unit == "s" {
		return durationBounds
	}
	return powersOfFour
}

var (
	powersOfFour = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}

	durationBounds = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
)
