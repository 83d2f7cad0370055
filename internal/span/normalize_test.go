package span

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// A label that is only truncated shares the memory of the original text.
func TestNormalize_CutsWithoutCopying(t *testing.T) {
	long := strings.Repeat("é", MaxResource)
	k := &Key{
		Service: "shop", Operation: "web", Resource: long, Type: long,
		PeerTags: []string{long, "a:" + long},
	}
	k.Normalize("")
	if unsafe.StringData(k.Resource) != unsafe.StringData(long) || len(k.Resource) != MaxResource ||
		len(k.Type) != MaxType || len(k.PeerTags[1]) != MaxLabel {
		t.Errorf("the resource has %d bytes, the type %d, a tag %d", len(k.Resource), len(k.Type),
			len(k.PeerTags[1]))
	}
}

// The test uses short texts and small limits, so that invalid bytes are often at the limit.
func TestText_AgreesWithReference(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 1))
	parts := []string{"a", "é", "日", "🍣", "\xff", "\xc3", "\xf0\x9f", "\xe6\x97", "\x80", "\x80\x80"}
	for range 300_000 {
		text, limit := "", rnd.IntN(12)
		for range rnd.IntN(12) {
			text += parts[rnd.IntN(len(parts))]
		}
		if got, want := Text(text, limit), referenceText(text, limit); got != want {
			t.Fatalf("%q to %d: %q, want %q", text, limit, got, want)
		}
	}
}
