package registry_test

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestHash_SameInEveryCycle checks that the hash of a key does not depend on the numbers of origins
// and keys, which differ in each cycle. Otherwise the routing that balances one cycle would not
// balance the next.
func TestHash_SameInEveryCycle(t *testing.T) {
	config := testConfig()
	config.MaxAggregates = 20
	a, b := registry.NewIntervals(&config).Registry(), registry.NewIntervals(&config).Registry()
	shop := func(r *registry.Registry) registry.OriginID {
		id, _ := r.AdmitOrigin(span.Origin{Service: "shop"})
		return id
	}
	b.AdmitOrigin(span.Origin{Service: "came first"})
	for i := range 20 {
		key := span.Key{Service: "s", Resource: fmt.Sprint(i), PeerTags: []string{"a:b"}}
		first := a.Admit(shop(a), &key)
		if second := b.Admit(shop(b), &key); first.Hash != second.Hash {
			t.Fatalf("key %d has hash %d and then %d", i, first.Hash, second.Hash)
		}
	}
	over := span.Key{Resource: "one too many"}
	if first, second := a.Admit(shop(a), &over), b.Admit(shop(b), &over); first.Hash != second.Hash {
		t.Errorf("an origin's overflow has hash %d and then %d", first.Hash, second.Hash)
	}
}
