package registry_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// admitAll admits each key twice, as a publisher does for a recurring key.
func admitAll(r *registry.Registry, origin registry.OriginID, keys []*span.Key) {
	for range 2 {
		for _, key := range keys {
			r.Admit(origin, key)
		}
	}
}

// tenants returns n keys with different tenants and the same region.
func tenants(n int) (keys []*span.Key) {
	for i := range n {
		keys = append(keys, &span.Key{
			Service: "shop", Operation: "get", Resource: "GET /",
			AdditionalTags: []string{fmt.Sprint("tenant.id:t", i), "region:eu"},
		})
	}
	return keys
}

// origin returns the ID of a service in the current interval.
func origin(t *testing.T, i *registry.Intervals, service string) registry.OriginID {
	t.Helper()
	id, ok := i.Registry().AdmitOrigin(span.Origin{Service: service})
	if !ok {
		t.Fatal("there is no place for the origin ", service)
	}
	return id
}

func isWithin(got, want int, share float64) bool {
	return math.Abs(float64(got-want)) <= share*float64(want)
}

// TestOverflow_NamesLabelAndDemand floods a tag over two intervals, with rows from the first one.
func TestOverflow_NamesLabelAndDemand(t *testing.T) {
	config := testConfig()
	config.LimitTag("tenant.id", 200)
	i := registry.NewIntervals(&config)
	if got := i.Overflow(); got != nil {
		t.Errorf("there is a report before the first key: %+v", got)
	}
	const wanted = 4100
	for interval := range 2 {
		shop, quiet := origin(t, i, "shop"), origin(t, i, "quiet")
		admitAll(i.Registry(), shop, tenants(wanted))
		admitAll(i.Registry(), quiet, tenants(100))
		busiest := tenants(wanted)[wanted-1]
		i.Registry().CountSpans(shop, busiest, 10_000)
		i.Begin()
		i.ReportEnded()
		report := i.Overflow()
		if report == nil || len(report.Labels) != 1 || !report.IsLast || report.LabelsNotMeasured != 0 {
			t.Fatalf("interval %d: the report is %+v", interval, report)
		}
		label := report.Labels[0]
		if label.Service != "shop" || label.Label != "tag:tenant.id" || label.Budget != 200 {
			t.Errorf("interval %d: the label is %+v", interval, label)
		}
		if !isWithin(label.Wanted, wanted, 0.07) { // more than four standard errors
			t.Errorf("interval %d: %d values wanted instead of %d", interval, label.Wanted, wanted)
		}
		if !isWithin(report.Keys, wanted+100, 0.07) {
			t.Errorf("interval %d: %d keys wanted instead of %d", interval, report.Keys, wanted+100)
		}
		if top := label.Collapsed[0]; top.Value != fmt.Sprint("t", wanted-1) || top.Spans < 10_000 {
			t.Errorf("interval %d: the most frequent value is %+v", interval, top)
		}
		if len(label.Collapsed) != 5 {
			t.Errorf("interval %d: %d collapsed values", interval, len(label.Collapsed))
		}
	}
	i.Begin()
	i.ReportEnded()
	if report := i.Overflow(); report == nil || report.IsLast {
		t.Errorf("after an interval without overflow, the report is %+v", report)
	}
}

// TestOverflow_NothingWithinBudget checks that nothing is reported if every value has a row.
func TestOverflow_NothingWithinBudget(t *testing.T) {
	config := testConfig()
	i := registry.NewIntervals(&config)
	admitAll(i.Registry(), origin(t, i, "shop"), tenants(40)) // of 100, half for new values
	i.Begin()
	i.ReportEnded()
	if got := i.Overflow(); got != nil {
		t.Errorf("the report is %+v", got)
	}
}

// TestOverflow_MasksAreValues checks that values with the same mask are counted as one value.
func TestOverflow_MasksAreValues(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelResource] = 40
	i := registry.NewIntervals(&config)
	shop := origin(t, i, "shop")
	for n := range 3000 {
		i.Registry().Admit(shop, resource(fmt.Sprintf("GET /users/%d", n)))
		i.Registry().Admit(shop, resource(fmt.Sprintf("GET /page-%c%c/edit", 'a'+n%26, 'a'+n/26%20)))
	}
	i.Begin()
	i.ReportEnded()
	const wanted = 26*20 + 1
	label := i.Overflow().Labels[0]
	if label.Label != "resource" || label.Wanted < wanted*93/100 || label.Wanted > (wanted+40)*107/100 {
		t.Errorf("%d values of %s wanted instead of about %d", label.Wanted, label.Label, wanted)
	}
}

// TestOverflow_LimitsMeasuredLabels floods more labels than are measured.
func TestOverflow_LimitsMeasuredLabels(t *testing.T) {
	config := testConfig()
	i := registry.NewIntervals(&config)
	shop := origin(t, i, "shop")
	for n := range 300 {
		key := &span.Key{Service: "shop"}
		for tag := range 20 {
			key.AdditionalTags = append(key.AdditionalTags, fmt.Sprintf("tag%d:%d", tag, n))
		}
		i.Registry().Admit(shop, key)
	}
	i.Begin()
	i.ReportEnded()
	report := i.Overflow()
	if len(report.Labels) != 16 || report.LabelsNotMeasured != 4 {
		t.Errorf("%d labels are measured, and %d are not", len(report.Labels), report.LabelsNotMeasured)
	}
}

// TestOverflow_KeysWithoutRow checks the number of keys if only the rows are used up.
func TestOverflow_KeysWithoutRow(t *testing.T) {
	config := testConfig()
	config.MaxAggregates = 100
	i := registry.NewIntervals(&config)
	shop := origin(t, i, "shop")
	for n := range 2000 {
		i.Registry().Admit(shop, &span.Key{
			Service: "shop", Operation: fmt.Sprint("o", n%40), Resource: fmt.Sprint("r", n/40),
		})
	}
	i.Begin()
	i.ReportEnded()
	report := i.Overflow()
	if len(report.Labels) != 0 || !isWithin(report.Keys, 2000, 0.07) {
		t.Errorf("the report is %+v", report)
	}
}

// TestOverflow_LargestOriginOfService checks that a label of a service is reported once.
func TestOverflow_LargestOriginOfService(t *testing.T) {
	config := testConfig()
	i := registry.NewIntervals(&config)
	for version, wanted := range []int{300, 900} {
		id, _ := i.Registry().AdmitOrigin(span.Origin{Service: "shop", Version: fmt.Sprint(version)})
		admitAll(i.Registry(), id, tenants(wanted))
	}
	i.Begin()
	i.ReportEnded()
	labels := i.Overflow().Labels
	if len(labels) != 1 || !isWithin(labels[0].Wanted, 900, 0.07) {
		t.Errorf("the labels are %+v", labels)
	}
}

// TestOverflow_ManyProcessesHideNoService floods the labels of seven versions of a service, and then a label of
// another service.
func TestOverflow_ManyProcessesHideNoService(t *testing.T) {
	config := testConfig()
	i := registry.NewIntervals(&config)
	cart := origin(t, i, "cart")
	for version := range 7 {
		id, _ := i.Registry().AdmitOrigin(span.Origin{Service: "shop", Version: fmt.Sprint(version)})
		for list := range 3 { // without a limit for processes these would be 21 measurements
			for _, key := range tenants(300) {
				key.AdditionalTags[0] = fmt.Sprint(list, key.AdditionalTags[0])
				i.Registry().Admit(id, key)
			}
		}
	}
	admitAll(i.Registry(), cart, tenants(500))
	i.Begin()
	i.ReportEnded()
	report := i.Overflow()
	if len(report.Labels) != 4 || report.Labels[0].Service != "cart" || report.LabelsNotMeasured != 0 {
		t.Errorf("the report is %+v", report)
	}
}

// TestOverflow_KeyInBothLists checks that a tag key in both lists of tags, each with a budget of its own, wants as many
// values as one list has.
func TestOverflow_KeyInBothLists(t *testing.T) {
	config := testConfig()
	i := registry.NewIntervals(&config)
	shop := origin(t, i, "shop")
	for n := range 1000 {
		tags := []string{fmt.Sprint("tenant.id:t", n)}
		i.Registry().Admit(shop, &span.Key{Service: "shop", PeerTags: tags, AdditionalTags: tags})
	}
	i.Begin()
	i.ReportEnded()
	labels := i.Overflow().Labels
	if len(labels) != 1 || !isWithin(labels[0].Wanted, 1000, 0.07) {
		t.Errorf("the labels are %+v", labels)
	}
}

// TestOverflow_ValueLostOnce checks that the first lost value does not stand for spans that were not lost.
func TestOverflow_ValueLostOnce(t *testing.T) {
	config := testConfig()
	config.LimitTag("tenant.id", 200)
	i := registry.NewIntervals(&config)
	shop := origin(t, i, "shop")
	for lost := false; !lost; {
		for _, key := range tenants(300) {
			if admission := i.Registry().Admit(shop, key); admission.Collapsed != 0 {
				lost = true
				break
			}
		}
	}
	i.Begin()
	i.ReportEnded()
	if collapsed := i.Overflow().Labels[0].Collapsed; len(collapsed) != 1 || collapsed[0].Spans != 1 {
		t.Errorf("the values are %+v", collapsed)
	}
}

// TestCountSpans_CountsNoKeyAgain checks that samples of the spans of a key change no counter of keys.
func TestCountSpans_CountsNoKeyAgain(t *testing.T) {
	keys := func(samples int) (masked uint64, label string, collapsed uint64) {
		config := testConfig()
		config.Budgets[span.LabelResource] = 40
		i := registry.NewIntervals(&config)
		shop := origin(t, i, "shop")
		var all []*span.Key
		for n := range 300 {
			all = append(all, &span.Key{
				Service: "shop", Resource: fmt.Sprintf("GET /users/%d", n), AdditionalTags: []string{fmt.Sprint("tenant.id:t", n)},
			})
		}
		admitAll(i.Registry(), shop, all) // the first keys that recur take all rows
		last := all[len(all)-1]
		for range samples {
			i.Registry().CountSpans(shop, last, 61)
		}
		i.Begin()
		i.ReportEnded()
		label, collapsed = i.MostCollapsed()
		return i.Masked()["resource"], label, collapsed
	}
	masked, label, collapsed := keys(0)
	maskedAfter, labelAfter, collapsedAfter := keys(100)
	if masked == 0 || collapsed == 0 {
		t.Fatalf("%d keys are masked, and %d have lost %q: the test covers nothing", masked, collapsed, label)
	}
	if maskedAfter != masked || labelAfter != label || collapsedAfter != collapsed {
		t.Errorf("%d keys are masked, and %d have lost %q; after samples %d, %d, %q",
			masked, collapsed, label, maskedAfter, collapsedAfter, labelAfter)
	}
}

// TestOverflow_SharedOrigin checks that values of several services that share an origin are not reported under the name
// of one of them.
func TestOverflow_SharedOrigin(t *testing.T) {
	config := testConfig()
	config.MaxOrigins = 1
	i := registry.NewIntervals(&config)
	origin(t, i, "first") // takes the only place
	for service := range 3 {
		name := fmt.Sprint("service", service)
		id, isShared := i.Registry().AdmitOriginOrShared(span.Origin{Service: name}, 0)
		if !isShared {
			t.Fatal("there is a place for ", name)
		}
		for _, key := range tenants(200) {
			key.Service = name
			i.Registry().Admit(id, key)
		}
	}
	i.Begin()
	i.ReportEnded()
	for _, label := range i.Overflow().Labels {
		if label.Service != span.Blocked {
			t.Errorf("%+v", label)
		}
	}
	if len(i.Overflow().Labels) == 0 {
		t.Error("no label is reported: the test covers nothing")
	}
}
