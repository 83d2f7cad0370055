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

// always are the attributes that every series has.
var always = []string{"service.name", "span.name", "span.kind", statusName}

// ParseDimensions parses names separated by commas. "all" includes all known dimensions, "-name"
// excludes one of these, and "none" must be the only name. A name can have a cardinality budget, as
// in tenant.id=200.
func ParseDimensions(text string) (d Dimensions, err error) {
	if text == "none" {
		return d, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		name, budget, hasBudget := strings.Cut(strings.TrimSpace(entry), "=")
		name, isExcluded := strings.CutPrefix(name, "-")
		limit, err := strconv.Atoi(budget)
		isInvalid := name == "" || name == "none" || strings.ContainsAny(name, " \t:") ||
			hasBudget && (err != nil || limit < 1) || isExcluded && (hasBudget || name == AllDimensions)
		switch {
		case isInvalid:
			return Dimensions{}, fmt.Errorf("parse dimensions %q: %q is not an attribute name, -name or name=N; "+
				"give all, none, or a comma-separated list such as http.route,tenant.id=200 or all,-peer.service",
				text, entry)
		case isExcluded:
			d.excluded = append(d.excluded, name)
		case name == AllDimensions:
			d.all = true
		default:
			d.names = append(d.names, name)
		}
		if hasBudget {
			d.setBudget(name, limit)
		}
	}
	if err := d.checkExclusions(text); err != nil {
		return Dimensions{}, err
	}
	return d, nil
}

// checkExclusions returns an error if an excluded dimension would be included nevertheless, or was
// not included at all.
func (d *Dimensions) checkExclusions(text string) error {
	for _, name := range d.excluded {
		switch {
		case !d.all:
			return fmt.Errorf("parse dimensions %q: -%s removes an attribute from all, which is not in the "+
				"list; give all,-%[2]s, or the names to add", text, name)
		case slices.Contains(always, name):
			return fmt.Errorf("parse dimensions %q: each series has %s; remove -%[2]s", text, name)
		case slices.Contains(d.names, name):
			return fmt.Errorf("parse dimensions %q: %s is both added and removed; give only one of them", text, name)
		}
	}
	return nil
}

func (d *Dimensions) setBudget(name string, limit int) {
	if d.budgets == nil {
		d.budgets = map[string]int{}
	}
	d.budgets[name] = limit
}

// Named iterates over the dimensions that the operator included by name. budget is the maximum
// number of values that the operator set for the dimension, or 0 if the default applies.
func (d *Dimensions) Named(yield func(name string, budget int) bool) {
	for _, name := range d.names {
		if !yield(name, d.budgets[name]) {
			return
		}
	}
}

// has reports whether an attribute is a dimension. Internal attributes of tracers are included only
// by name.
func (d *Dimensions) has(name string) bool {
	return slices.Contains(d.names, name) ||
		d.all && name != resourceDimension && !strings.HasPrefix(name, "_dd.") && !slices.Contains(d.excluded, name)
}

// tag is a tag of a key, as an attribute.
type tag struct{ name, value string }

// isStatus reports whether the tag is the span's status, which is an attribute of its own.
func (t tag) isStatus() bool { return t.name+":"+t.value == span.StatusOK }

// tagList contains the tags of a key, as attributes.
type tagList []tag

// add adds the tags of a list that are dimensions: with OpenTelemetry's names, and also with their
// own names if the operator included those.
func (t tagList) add(list []string, dims *Dimensions) tagList {
	for _, text := range list {
		key, value, isTag := strings.Cut(text, ":")
		if !isTag {
			continue
		}
		name := attributeName(key)
		if dims.has(name) {
			t = append(t, tag{name, value})
		}
		if key != name && slices.Contains(dims.names, key) {
			t = append(t, tag{key, value})
		}
	}
	return t
}

// write writes the tags sorted by name, so that keys with the same tags belong to one series, even
// if the tags were ordered or named differently.
func (t tagList) write(attrs *attributes) {
	for i := range t {
		t[i].name = attrs.format.nameOf(t[i].name)
	}
	slices.SortFunc(t, func(a, b tag) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	for _, tag := range t {
		attrs.text(tag.name, tag.value)
	}
}
