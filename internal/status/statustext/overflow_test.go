package statustext_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/statustext"
)

// TestRender_LabelsOverBudget checks that the text names each label over its budget, its number of values
// and the most frequent one, and nothing if there was no such label.
func TestRender_LabelsOverBudget(t *testing.T) {
	s := &status.Status{Schema: status.StatusSchema}
	s.Destinations = []status.DestinationStatus{{Name: "prometheus"}}
	if text := statustext.Render(s, nil, false); strings.Contains(text, "over their budgets") {
		t.Errorf("without such a label, the text is\n%s", text)
	}
	s.Overflow = &registry.Overflow{Keys: 4187, LabelsNotMeasured: 2, Labels: []registry.LabelOverflow{{
		Service: "shop", Label: "tag:tenant.id", Budget: 200, Wanted: 4104,
		Collapsed: []registry.CollapsedValue{{Value: "acme", Spans: 9}, {Value: "other", Spans: 8}},
	}}}
	text := statustext.Render(s, nil, false)
	for _, want := range []string{
		"about 4,187 aggregates", "shop     tag:tenant.id  200     ~4,104  acme", "and 2 more labels", "spanstatsd plan",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
