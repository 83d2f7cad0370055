package points

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Dimensions are the attributes of a series in the spanmetrics dialect, in addition to the four
// that each series has.
type Dimensions struct {
	all      bool           // all known attributes, except the resource
	excluded []string       // excluded from all
	names    []string       // included by name
	budgets  map[string]int // by name; optional
}

// resourceDimension is the resource of a Datadog span, as named by the Collector's receiver. It has
// as many values as all other dimensions together, so it is included only by name.
const resourceDimension = "dd.span.Resource"

// AllDimensions stands for all dimensions except the resource.
const AllDimensions = "all"

// attributesOfAllSeries are the attributes that every series has.
var attributesOfAllSeries = []string{"service.name", "span.name", "span.kind", statusName}

// ParseDimensions parses a comma-separated list of dimensions. "all" includes all known dimensions, "-name"
// excludes one of these, and "none" must be the only entry. "name=200" includes a dimension and limits it to 200
// different values.
func ParseDimensions(text string) (Dimensions, error) {
	var d Dimensions
	if text == "none" {
		return d, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		parsed, isValid := parseDimension(strings.TrimSpace(entry))
		if !isValid {
			return Dimensions{}, fmt.Errorf("parse dimensions %q: %q is not an attribute name, -name or name=N; "+
				"use all, none, or a comma-separated list such as http.route,tenant.id=200 or all,-peer.service",
				text, entry)
		}
		d.add(parsed)
	}
	if err := d.checkExclusions(text); err != nil {
		return Dimensions{}, err
	}
	return d, nil
}

// dimension is one entry of a list of dimensions.
type dimension struct {
	name       string
	isExcluded bool
	budget     int // maximum number of values; 0 if the default applies
}

// parseDimension parses one entry of a list of dimensions: name, name=budget or -name. isValid is false if the
// entry has another form.
func parseDimension(entry string) (d dimension, isValid bool) {
	name, budgetText, hasBudget := strings.Cut(entry, "=")
	d.name, d.isExcluded = strings.CutPrefix(name, "-")
	if !isDimensionName(d.name) {
		return d, false
	}
	if d.isExcluded {
		excludesAll := d.name == AllDimensions
		return d, !excludesAll && !hasBudget
	}
	if hasBudget {
		budget, err := strconv.Atoi(budgetText)
		d.budget = budget
		return d, err == nil && budget >= 1
	}
	return d, true
}

// isDimensionName reports whether name can be the name of a dimension, or "all".
func isDimensionName(name string) bool {
	return name != "" && name != "none" && !strings.ContainsAny(name, " \t:")
}

// add adds an entry to the dimensions.
func (d *Dimensions) add(entry dimension) {
	switch {
	case entry.isExcluded:
		d.excluded = append(d.excluded, entry.name)
	case entry.name == AllDimensions:
		d.all = true
	default:
		d.names = append(d.names, entry.name)
	}
	if entry.budget > 0 {
		if d.budgets == nil {
			d.budgets = map[string]int{}
		}
		d.budgets[entry.name] = entry.budget
	}
}

// checkExclusions returns an error if an exclusion is invalid. An exclusion requires "all", must not name an attribute
// that each series has, and must not contradict another entry of the list. text is the whole list, for the error.
func (d *Dimensions) checkExclusions(text string) error {
	for _, name := range d.excluded {
		switch {
		case !d.all:
			return fmt.Errorf("parse dimensions %q: -%s removes an attribute from all, which is not in the "+
				"list; use all,-%[2]s, or the names to add", text, name)
		case slices.Contains(attributesOfAllSeries, name):
			return fmt.Errorf("parse dimensions %q: each series has %s; remove -%[2]s", text, name)
		case slices.Contains(d.names, name):
			return fmt.Errorf("parse dimensions %q: %s is both added and removed; use only one of them", text, name)
		}
	}
	return nil
}

// Named iterates over the dimensions that the operator has included by name, with their budgets: the maximum
// number of different values, or 0 if the operator has not set one.
func (d *Dimensions) Named(yield func(name string, budget int) bool) {
	for _, name := range d.names {
		if !yield(name, d.budgets[name]) {
			return
		}
	}
}

// has reports whether an attribute is a dimension: the operator has included it by name, or has included "all" and not
// excluded it. "all" does not include resourceDimension and names that begin with "_dd.", which tracers use
// internally.
func (d *Dimensions) has(name string) bool {
	if d.includesByName(name) {
		return true
	}
	if !d.all {
		return false
	}
	isOnlyByName := name == resourceDimension || strings.HasPrefix(name, "_dd.")
	isExcluded := isOnlyByName || slices.Contains(d.excluded, name)
	return !isExcluded
}

// includesByName reports whether the operator has included an attribute by its name, not only by "all".
func (d *Dimensions) includesByName(name string) bool { return slices.Contains(d.names, name) }

// tag is an attribute with a text.
type tag struct{ name, value string }

// isStatusOK reports whether the tag is the status OK of a span.
func (t tag) isStatusOK() bool { return t.name+":"+t.value == span.StatusOK }

// tagList contains the tags of a key, as attributes.
type tagList []tag

// add appends the tags that are dimensions to the list, and returns the extended list. tags are texts such as
// db.type:postgres. Each tag gets OpenTelemetry's name for it, here db.system.name. If the operator has included the
// original name, add also appends the tag with that name.
func (t tagList) add(tags []string, dimensions *Dimensions) tagList {
	for _, text := range tags {
		originalName, value, isTag := strings.Cut(text, ":")
		if !isTag {
			continue
		}
		name := attributeName(originalName)
		if dimensions.has(name) {
			t = append(t, tag{name, value})
		}
		isRenamed := name != originalName
		if isRenamed && dimensions.includesByName(originalName) { // "all" includes only OpenTelemetry's name
			t = append(t, tag{originalName, value})
		}
	}
	return t
}

// write writes the tags as attributes, sorted by name and value. The order matters: two lists with the same
// attributes are the same series only if their bytes are equal.
func (t tagList) write(to *attributes) {
	for i := range t {
		t[i].name = to.format.nameOf(t[i].name)
	}
	slices.SortFunc(t, func(a, b tag) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	for _, tag := range t {
		to.addText(tag.name, tag.value)
	}
}
