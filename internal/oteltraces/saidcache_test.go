package oteltraces

import (
	"hash/maphash"
	"testing"
)

// TestResourcesWithOneHashAreTwo: a hash only says where to look.
func TestResourcesWithOneHashAreTwo(t *testing.T) {
	var c saidCache[string]
	makes := func(made string) func() string { return func() string { return made } }
	c.of([]byte("one"), makes("of one"))
	c.known[0].hash = maphash.Bytes(c.seed, []byte("another"))
	if got := c.of([]byte("another"), makes("of another")); got != "of another" {
		t.Errorf("another resource is %q", got)
	}
	if got := c.of([]byte("another"), makes("of a third")); got != "of another" {
		t.Errorf("a resource that was met is %q", got)
	}
}
