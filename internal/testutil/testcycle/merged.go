package testcycle

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Merged is a sealed cycle in which nothing but these groups was counted, as if a
// tracer had sent them.
func Merged(t testing.TB, now time.Time, groups ...aggregate.Group) (sealed *aggregate.Sealed) {
	t.Helper()
	config := aggregate.DefaultConfig()
	config.Merge, config.Deliver = true, func(s *aggregate.Sealed) { sealed = s }
	a, err := aggregate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	guard := a.NewGuard()
	cycle := guard.Enter()
	origin, _ := cycle.AdmitOrigin(span.Origin{})
	merging := cycle.Merging()
	if err := merging.Reserve(groups, uint64(Width), now); err != nil {
		t.Fatal(err)
	}
	for i := range groups {
		merging.Add(origin, &groups[i])
	}
	merging.End()
	guard.Exit()
	a.Start()
	a.Stop()
	return sealed
}
