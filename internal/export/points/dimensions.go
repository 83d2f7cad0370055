package points

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Dimensions are the attributes of a series in the dialect spanmetrics, in addition to the four that each
// has.
type Dimensions struct {
	all     bool     // that we know, but the resource
	without []string // of all
	names   []string
	budgets map[string]int // by name, of those that have one of their own
}

// resourceDimension is the resource of a Datadog span, by the name that the Collector's receiver gives it.
// It has as many values as all other dimensions together, so it is included only by name.
const resourceDimension = "dd.span.Resource"

// AllDimensions stands for all dimensions except the resource.
const AllDimensions = "all"

// always are the attributes that no dimensions leave out.
var always = []string{"service.name", "span.name", "span.kind", statusName}

// ParseDimensions parses names separated by commas; "all" is one of them, "-name" leaves one out of all, and "none"
// is valid alone. A name can have a budget, as in tenant.id=200.
func ParseDimensions(text string) (d Dimensions, err error) {
	if text == "none" {
		return d, nil
	}
	for given := range strings.SplitSeq(text, ",") {
		name, budget, hasBudget := strings.Cut(strings.TrimSpace(given), "=")
		name, isWithout := strings.CutPrefix(name, "-")
		limit, err := strconv.Atoi(budget)
		switch {
		case name == "" || name == "none" || strings.ContainsAny(name, " \t:"),
			hasBudget && (err != nil || limit < 1), isWithout && (hasBudget || name == AllDimensions):
			return Dimensions{}, fmt.Errorf("parse dimensions %q: %q is not an attribute's name, -name or "+
				"name=N; give all, none, or names with commas as http.route,tenant.id=200 or all,-peer.service",
				text, given)
		case isWithout:
			d.without = append(d.without, name)
		case name == AllDimensions:
			d.all = true
		default:
			d.names = append(d.names, name)
		}
		if hasBudget {
			d.setBudget(name, limit)
		}
	}
	if err := d.checkWithout(text); err != nil {
		return Dimensions{}, err
	}
	return d, nil
}

// checkWithout reports what is left out and would be there all the same.
func (d *Dimensions) checkWithout(text string) error {
	for _, name := range d.without {
		switch {
		case !d.all:
			return fmt.Errorf("parse dimensions %q: -%s leaves an attribute out of all, which is not there; "+
				"give all,-%[2]s, or the names that are wanted", text, name)
		case slices.Contains(always, name):
			return fmt.Errorf("parse dimensions %q: each series has %s; leave out -%[2]s", text, name)
		case slices.Contains(d.names, name):
			return fmt.Errorf("parse dimensions %q: %s is named and left out; give one of both", text, name)
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

// Named visits the dimensions that were given by name, each with its budget, 0 if it has none.
func (d *Dimensions) Named(yield func(name string, budget int) bool) {
	for _, name := range d.names {
		if !yield(name, d.budgets[name]) {
			return
		}
	}
}

// has reports whether an attribute is a dimension. Internal attributes of tracers are included only by
// name.
func (d *Dimensions) has(name string) bool {
	return slices.Contains(d.names, name) ||
		d.all && name != resourceDimension && !strings.HasPrefix(name, "_dd.") && !slices.Contains(d.without, name)
}

// tag is an attribute that a tracer or an operator chose.
type tag struct{ name, value string }

// isStatus reports whether it is the status of a span, which is an attribute of its own.
func (t tag) isStatus() bool { return t.name+":"+t.value == span.StatusOK }

// tagList has the tags of a key, as attributes.
type tagList []tag

// add adds the tags of a list that are dimensions, with OpenTelemetry's names, and with their own names if an
// operator named those.
func (t tagList) add(list []string, wanted *Dimensions) tagList {
	for _, text := range list {
		key, value, isTag := strings.Cut(text, ":")
		if !isTag {
			continue
		}
		name := attributeName(key)
		if wanted.has(name) {
			t = append(t, tag{name, value})
		}
		if key != name && slices.Contains(wanted.names, key) {
			t = append(t, tag{key, value})
		}
	}
	return t
}

// write writes the tags sorted by name, so that two keys with the same tags are one series, whatever their
// tags were called before.
func (t tagList) write(to *attributes) {
	for i := range t {
		t[i].name = to.format.named(t[i].name)
	}
	slices.SortFunc(t, func(a, b tag) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	for _, tag := range t {
		to.text(tag.name, tag.value)
	}
}
