package registry_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// testConfig has few origins.
func testConfig() registry.Config {
	config := registry.DefaultConfig()
	config.MaxOrigins = 8
	return config
}

// one is the first interval of a configuration, and its first origin.
func one(t testing.TB, change func(*registry.Config)) (*registry.Registry, registry.OriginID) {
	t.Helper()
	config := testConfig()
	change(&config)
	r := registry.NewIntervals(&config).Registry()
	origin, ok := r.AdmitOrigin(span.Origin{Service: "shop"})
	if !ok {
		t.Fatal("no room for the first origin")
	}
	return r, origin
}

// resource is a key with a resource.
func resource(value string) *span.Key {
	return &span.Key{Service: "s", Operation: "o", Resource: value}
}

func rowsOf(r *registry.Registry) []registry.KeyEntry {
	_, entries := r.Contents()
	return entries
}

// rowOf is the key that an admission is counted under.
func rowOf(r *registry.Registry, a registry.Admission) *span.Key {
	_, entries := r.Contents()
	return &entries[a.ID].Key
}

func set(labels ...span.Label) (s registry.LabelSet) {
	for _, l := range labels {
		s |= 1 << l
	}
	return s
}

// with puts a value into a label of a key; into a list, a tag with it.
func with(k *span.Key, l span.Label, value string) {
	if l < span.FirstList {
		*k.Text(l) = value
	} else {
		*k.Tags(l) = []string{"key:" + value}
	}
}

func long(n int) string { return strings.Repeat("l", n) }
