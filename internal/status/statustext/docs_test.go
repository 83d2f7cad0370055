package statustext_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/statustext"
)

// TestDocs_ShowCurrentRows checks that each row of the accounting that a page of docs/ shows has a name that the
// program prints.
func TestDocs_ShowCurrentRows(t *testing.T) {
	row := regexp.MustCompile(`(?m)^ *(?:│ )?[├└] (\w+) `)
	current := map[string]bool{}
	for _, parts := range row.FindAllStringSubmatch(renderedAccounting(), -1) {
		current[parts[1]] = true
	}
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, parts := range row.FindAllStringSubmatch(string(text), -1) {
			shown++
			if !current[parts[1]] {
				t.Errorf("%s shows the row %q, which status does not print", filepath.Base(page), parts[1])
			}
		}
	}
	if shown == 0 {
		t.Error("no page shows the accounting")
	}
}

// renderedAccounting returns the text of a status with one destination.
func renderedAccounting() string {
	s := &status.Status{
		Schema: status.StatusSchema, At: time.Now(),
		Delivery: status.Delivery{Destinations: []status.DestinationStatus{{Name: "agent"}}},
	}
	return statustext.Render(s, nil, false)
}
