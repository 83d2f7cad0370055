package otel_test

import (
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// counted is a snapshot with its key and origin.
type counted struct {
	span.Snapshot
	origin      span.Origin
	key         span.Key
	bytes       []byte // key in the native protocol; nil if the span is ignored
	fingerprint string
}

// keyByFingerprint contains the keys of all spans of all tests, by fingerprint.
var keyByFingerprint sync.Map

// countedOf returns the spans that a counter counts in a body. It fails if spans with equal
// fingerprints have different keys.
func countedOf(t testing.TB, c *otel.Counter, body []byte, policy *otel.Policy) (all []counted) {
	t.Helper()
	if err := c.Count(body, policy); err != nil {
		t.Fatal(err)
	}
	for origin, batch := range c.Batches {
		for i := range batch.Snapshots {
			s := counted{
				Snapshot: batch.Snapshots[i], origin: origin,
				fingerprint: string(batch.FingerprintOf(&batch.Snapshots[i])),
			}
			if s.Flags&span.Ignored == 0 {
				s.bytes = wire.AppendKey(nil, batch.Labeler.Label(s.Span))
				if err := wire.ReadKey(&s.key, s.bytes); err != nil {
					t.Fatal(err)
				}
			} else if s.fingerprint != "" {
				t.Errorf("an ignored span has the fingerprint %q", s.fingerprint)
			}
			if s.fingerprint != "" {
				other, _ := keyByFingerprint.LoadOrStore(s.fingerprint, string(s.bytes))
				if other != string(s.bytes) {
					t.Errorf("the fingerprint %q has the keys\n%q and\n%q", s.fingerprint, other, s.bytes)
				}
			}
			all = append(all, s)
		}
	}
	return all
}

// only returns the span of a request with a single span.
func only(t testing.TB, s otlptest.Span, policy *otel.Policy) counted {
	t.Helper()
	all := countedOf(t, otel.NewCounter(), otlptest.SDKRequest(s), policy)
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	return all[0]
}

func standard() *otel.Policy { return otel.NewPolicy(otel.Labels{}) }
