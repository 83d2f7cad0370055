package client

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestCutChangesNothing: the daemon comes to the same key, cut or not.
func TestCutChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	text := func(limit int) string {
		pieces := []string{"a", "\xff", "é", "€", "😀", "\xf0\x9f"}
		var b strings.Builder
		for want := limit - 20 + r.IntN(40); b.Len() < want; {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	tags := func() []string {
		tags := make([]string, r.IntN(100))
		for i := range tags {
			tags[i] = text(span.MaxLabel)
		}
		return tags
	}
	for range 300 {
		k := Key{
			Service: text(span.MaxService), Operation: text(span.MaxOperation),
			Resource: text(span.MaxResource), Type: text(span.MaxType), Kind: text(span.MaxLabel),
			HTTPMethod: text(span.MaxLabel), HTTPEndpoint: text(span.MaxLabel),
			GRPCStatus: text(span.MaxLabel), ServiceSource: text(span.MaxLabel), PeerTags: tags(),
			AdditionalTags: tags(),
		}
		var c cutter
		given := slices.Clone(k.PeerTags)
		cut := *c.cut(&k)
		if !slices.Equal(given, k.PeerTags) {
			t.Fatal("the caller's tags were changed")
		}
		if normalized(cut) != normalized(k) {
			t.Fatalf("cut %+v is another key than %+v", cut, k)
		}
		if bound := keyBound(&cut); bound > maxKeyBytes || len(wire.AppendKey(nil, &cut)) > bound {
			t.Fatalf("a cut key has up to %d bytes, encoded %d", bound, len(wire.AppendKey(nil, &cut)))
		}
	}
}

// TestLargestKeyFits: any snapshot fits an empty buffer, so a shard that goes on
// to a fresh one always gets further.
func TestLargestKeyFits(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	many := slices.Repeat([]string{long}, 500)
	k := Key{
		Service: long, Operation: long, Resource: long, Type: long, Kind: long, HTTPMethod: long,
		HTTPEndpoint: long, GRPCStatus: long, ServiceSource: long, PeerTags: many, AdditionalTags: many,
		TraceRoot: TraceRootTrue, HTTPStatus: 1 << 31, Synthetics: true,
	}
	var c cutter
	cut := c.cut(&k)
	if bound := keyBound(cut); bound > maxKeyBytes || headerRoom+snapshotRoom+bound > bufferBytes-defineRoom {
		t.Errorf("the largest key is taken for %d bytes, at most %d are planned", bound, maxKeyBytes)
	}
}
