package slo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	defaultDays = 30
	// With a shorter window, the thresholds of the usual alerts would be below the error budget.
	minDays, maxDays = 28, 90

	anyKind = "any"
	example = "checkout: service=shop, span=POST /checkout, 300ms, 99.9%"
)

// entryKinds are the kinds of spans that an objective counts by default: the work that a service does for others.
var entryKinds = []string{"server", "consumer"}

// allKinds contains the values of kind.
var allKinds = []string{"server", "consumer", "client", "producer", "internal", anyKind}

// objectiveName matches names that are valid in every part of a rule for Prometheus, and in a YAML file.
var objectiveName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// attributeName matches names of attributes.
var attributeName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// Parse parses texts with one objective per line, such as
//
//	checkout: service=shop, span=POST /checkout, 300ms, 99.9%
//
// and skips empty lines. The error names each invalid objective.
func Parse(texts []string) (objectives []Objective, mistakes error) {
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			o, err := parseObjective(line)
			if err != nil {
				mistakes = errors.Join(mistakes, fmt.Errorf("parse --slo %q: %w", line, err))
				continue
			}
			objectives = append(objectives, o)
		}
	}
	return objectives, mistakes
}

// NewList returns a list of objectives, or nil without objectives. It returns an error if there are too many, or two with
// the same name.
func NewList(objectives []Objective) (*List, error) {
	if len(objectives) == 0 {
		return nil, nil
	}
	if len(objectives) > MaxObjectives {
		return nil, fmt.Errorf("check objectives: %d exceed the maximum of %d; remove some", len(objectives), MaxObjectives)
	}
	names := map[string]bool{}
	for i := range objectives {
		name := objectives[i].Name
		if names[name] {
			return nil, fmt.Errorf("check objectives: there are two with the name %s; rename one of them", name)
		}
		names[name] = true
	}
	return &List{objectives}, nil
}

// parseObjective parses the text of one objective: its name, a colon, and fields that are separated by commas.
func parseObjective(text string) (o Objective, err error) {
	name, fields, hasName := strings.Cut(text, ":")
	if !hasName {
		return o, fmt.Errorf("the name is missing; use NAME: FIELD, FIELD, such as %q", example)
	}
	o.Name = strings.TrimSpace(name)
	for field := range strings.SplitSeq(fields, ",") {
		if err := o.parseField(strings.TrimSpace(field)); err != nil {
			return o, err
		}
	}
	return o, o.complete()
}

// parseField parses one field: label=value, a target such as 99.9%, a window such as 30d, or a threshold such as 300ms.
func (o *Objective) parseField(field string) error {
	label, value, isLabel := strings.Cut(field, "=")
	percentage, isTarget := strings.CutSuffix(field, "%")
	days, isWindow := strings.CutSuffix(field, "d")
	switch {
	case isLabel:
		return o.addLabel(strings.TrimSpace(label), strings.TrimSpace(value))
	case isTarget:
		return o.parseTarget(percentage)
	case isWindow:
		return o.parseWindow(days)
	}
	return o.parseThreshold(field)
}

func (o *Objective) parseTarget(percentage string) (err error) {
	if o.Target != 0 {
		return errors.New("there are two targets; remove one")
	}
	o.Target, err = strconv.ParseFloat(percentage, 64)
	if err != nil || !o.hasTarget() {
		return fmt.Errorf("%s%% is not a target; use a percentage above 0 and up to 99.9999999%%, such as 99.9%%", percentage)
	}
	return nil
}

// hasTarget reports whether the target is valid. It must leave an error budget, by which rules divide. NaN is invalid.
func (o *Objective) hasTarget() bool { return o.Target > 0 && o.ErrorBudget() > 0 }

func (o *Objective) parseWindow(days string) (err error) {
	if o.Days != 0 {
		return errors.New("there are two windows; remove one")
	}
	o.Days, err = strconv.Atoi(days)
	if err != nil || o.Days < minDays || o.Days > maxDays {
		return fmt.Errorf("%sd is not a window; use %dd to %dd", days, minDays, maxDays)
	}
	return nil
}

func (o *Objective) parseThreshold(text string) (err error) {
	if o.Threshold != 0 {
		return errors.New("there are two thresholds; remove one")
	}
	o.Threshold, err = time.ParseDuration(text)
	if err != nil || o.Threshold <= 0 {
		return fmt.Errorf("%q is not a field; use label=value, a threshold such as 300ms, a target such as 99.9%%, "+
			"or a window such as 30d", text)
	}
	return nil
}

// addLabel adds a label that spans must have. The label "kind" selects a kind of spans.
func (o *Objective) addLabel(name, value string) error {
	isDuplicate := slices.ContainsFunc(o.Labels, func(l Label) bool { return l.Name == name })
	label := Label{name, value}
	switch {
	case value == "":
		return fmt.Errorf("the value of %s is empty; set %s=value, or remove it", name, name)
	case name == labelKind:
		return o.setKind(value)
	case otherNames[name] != "":
		return fmt.Errorf("%s is not a label of objectives; use %s=%s", name, otherNames[name], value)
	case isDuplicate:
		return fmt.Errorf("the label %s occurs twice; use it once", name)
	case label.isAttribute() && !attributeName.MatchString(name):
		return fmt.Errorf("%q is not a label; use one of %s, %s, or the name of an attribute such as tenant.id",
			name, strings.Join(otherLabels, ", "), labelKind)
	}
	if name == labelService {
		o.Service = value
		label.Value = span.ServiceName(value, "") // as in the keys of spans
	}
	o.Labels = append(o.Labels, label)
	return nil
}

// otherNames contains the labels by the names that they have in metrics, and by short names that are easily mistaken for them.
var otherNames = map[string]string{
	"service.name": labelService, "span.name": labelSpan, "span.kind": labelKind,
	"route": labelRoute, "method": labelMethod, "resource": labelSpan, "name": labelSpan,
}

// setKind sets the kind of spans.
func (o *Objective) setKind(kind string) error {
	switch {
	case o.Kinds != nil:
		return errors.New("the label kind occurs twice; use it once")
	case !slices.Contains(allKinds, kind):
		return fmt.Errorf("%q is not a kind; use one of %s", kind, strings.Join(allKinds, ", "))
	case kind == anyKind:
		o.Kinds = []string{}
	default:
		o.Kinds = []string{kind}
	}
	return nil
}

// complete checks an objective, and sets the defaults of absent fields.
func (o *Objective) complete() error {
	switch {
	case !objectiveName.MatchString(o.Name):
		return fmt.Errorf("%q is not a name; use up to 63 letters, digits, '.', '_' and '-'", o.Name)
	case len(o.Labels) == 0:
		return errors.New("it selects every span; add a label such as service=shop")
	case o.Target == 0:
		return errors.New("the target is missing; add a percentage such as 99.9%")
	}
	if o.Days == 0 {
		o.Days = defaultDays
	}
	if o.Kinds == nil {
		o.Kinds = entryKinds
	}
	return nil
}
