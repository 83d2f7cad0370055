package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
)

// overflow returns a report about one tag that wanted the given number of values.
func overflow(wanted int) *registry.Overflow {
	return &registry.Overflow{Keys: wanted, Labels: []registry.LabelOverflow{{
		Service: "shop", Label: "tag:tenant.id", Budget: 200, Wanted: wanted,
		Collapsed: []registry.CollapsedValue{{Value: "t1", Spans: 9}},
	}}}
}

// planned returns the plan for a daemon with 8,192 aggregates, after a change of its status.
func planned(change func(*status.Status)) doctor.Plan {
	s := healthy()
	s.Aggregates.Max = 8192
	s.Memory.Parts = []memory.Part{
		{Name: "labels", Bytes: 20 << 20, Flag: "label-bytes"}, {Name: "tables", Bytes: 8 << 20, Flag: "max-aggregates"},
	}
	change(s)
	return doctor.NewPlan(s)
}

func TestPlan_NothingWithoutOverflow(t *testing.T) {
	plan := planned(func(*status.Status) {})
	if len(plan.Demand) != 0 || len(plan.Flags) != 0 || !plan.Fits() {
		t.Errorf("the plan for a healthy daemon is %+v", plan)
	}
}

// TestPlan_RaisesOnlyBudget checks that the limits of all label sets stay if they are large enough, and that
// other budgets of the daemon are kept.
func TestPlan_RaisesOnlyBudget(t *testing.T) {
	plan := planned(func(s *status.Status) {
		s.Overflow = overflow(500)
		s.Config = append(s.Config, status.Setting{Name: "cardinality-limit", Value: "[resource=2000,tag:tenant.id=200]"})
	})
	if want := []string{"--cardinality-limit=resource=2000,tag:tenant.id=1100"}; !slices.Equal(plan.Flags, want) {
		t.Errorf("the flags are %q, want %q", plan.Flags, want)
	}
	if plan.TotalBytes != 10<<20 {
		t.Errorf("a larger budget alone needs memory: %d bytes", plan.TotalBytes)
	}
}

// TestPlan_RaisesAggregates checks that more label sets get more rows, and that their memory is compared
// with the limit.
func TestPlan_RaisesAggregates(t *testing.T) {
	plan := planned(func(s *status.Status) { s.Overflow = overflow(41_000) })
	want := []string{"--cardinality-limit=tag:tenant.id=87000", "--max-aggregates=87000", "--label-bytes=85MiB"}
	if !slices.Equal(plan.Flags, want) {
		t.Errorf("the flags are %q, want %q", plan.Flags, want)
	}
	if plan.Fits() || plan.TotalBytes < 250<<20 {
		t.Errorf("%d bytes fit in %d", plan.TotalBytes, plan.LimitBytes)
	}
}

// TestPlan_DropsDimensionOverMaximum checks that no flag is proposed for more values than any budget holds.
func TestPlan_DropsDimensionOverMaximum(t *testing.T) {
	plan := planned(func(s *status.Status) { s.Overflow = overflow(3_000_000) })
	if len(plan.Flags) != 0 || !strings.Contains(strings.Join(plan.Demand, "\n"), "drop the dimension") {
		t.Errorf("the plan is %+v", plan)
	}
}

// TestLook_FixNamesFlag checks that the fix for a label over its budget is the flag that raises the budget.
func TestLook_FixNamesFlag(t *testing.T) {
	s := healthy()
	s.Overflow = overflow(4104)
	s.Overflow.Labels[0].Service = "shop\x1b[31m"
	for _, finding := range doctor.Diagnose(s, version) {
		if finding.Verdict != doctor.Notice {
			continue
		}
		if !strings.Contains(finding.Fix, "--cardinality-limit tag:tenant.id=8700, or drop the dimension") {
			t.Errorf("the fix is %q", finding.Fix)
		}
		if strings.Contains(finding.Message, "\x1b") || !strings.Contains(finding.Message, `"t1"`) {
			t.Errorf("the message is %q", finding.Message)
		}
	}
}
