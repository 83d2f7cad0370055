package otel_test

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// counted is a snapshot with its key, and who sent it.
type counted struct {
	span.Snapshot
	origin span.Origin
	key    span.Key
	bytes  []byte // of the key
}

// countedOf are the spans that a counter makes of a body.
func countedOf(t testing.TB, c *otel.Counter, body []byte, policy *otel.Policy) (all []counted) {
	t.Helper()
	if err := c.Count(body, policy); err != nil {
		t.Fatal(err)
	}
	for origin, batch := range c.Batches {
		for i := range batch.Snapshots {
			s := counted{
				Snapshot: batch.Snapshots[i], origin: origin,
				bytes: batch.KeyOf(&batch.Snapshots[i]),
			}
			if err := wire.ReadKey(&s.key, s.bytes); err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
	}
	return all
}

// only is the one span of a request with it alone.
func only(t testing.TB, s otlptest.Span, policy *otel.Policy) counted {
	t.Helper()
	all := countedOf(t, otel.NewCounter(), otlptest.SDKRequest(s), policy)
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	return all[0]
}

func standard() *otel.Policy { return otel.NewPolicy(otel.Labels{}) }
