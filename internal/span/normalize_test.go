package span

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// needy is a key each label of which must be rewritten.
func needy() *Key {
	k := &Key{
		Service: "Große Läden #1", Operation: "größe.machen()",
		Resource: strings.Repeat("gr\xf6\xdfer ", 100), Type: "w\xe4b", Kind: "\xff", HTTPMethod: "G\xcbT",
		HTTPEndpoint: "/stra\xdfe", GRPCStatus: "\xfe0", ServiceSource: "k\xfcche",
	}
	for i := range 256 {
		k.PeerTags = append(k.PeerTags, fmt.Sprint("name", i, ":b\xfcro"))
		k.AdditionalTags = append(k.AdditionalTags, fmt.Sprint("name", i, ":", strings.Repeat("x", 201)))
	}
	return k
}

// TestMendingAllocatesOnce: the memory for what is rewritten, and none of it for the keys
// that follow.
func TestMendingAllocatesOnce(t *testing.T) {
	k, m := needy(), Mender{}
	tags, lists := [2][]string{slices.Clone(k.PeerTags), slices.Clone(k.AdditionalTags)},
		[2][]string{k.PeerTags, k.AdditionalTags}
	if allocs := testing.AllocsPerRun(100, func() {
		mended := *k
		copy(lists[0], tags[0])
		copy(lists[1], tags[1])
		if mended.PeerTags, mended.AdditionalTags = lists[0], lists[1]; !m.Mend(&mended, "go") ||
			len(mended.PeerTags) != MaxPeerTags {
			t.Fatal("nothing was mended")
		}
	}); allocs != 0 {
		t.Errorf("mending a key allocates %g times", allocs)
	}
	if m.Release(); m.rewritten != nil {
		t.Errorf("%d bytes are kept", cap(m.rewritten))
	}
	if allocs := testing.AllocsPerRun(100, func() {
		mended := Key{Service: "shop", Operation: "web", Resource: k.Resource, Kind: k.Kind}
		m.Mend(&mended, "go")
		m.Release()
	}); allocs > 1 {
		t.Errorf("a batch allocates %g times", allocs)
	}
}

// TestAMenderKeepsLittle: what it may keep it keeps, or each batch would allocate.
func TestAMenderKeepsLittle(t *testing.T) {
	k, m := &Key{Service: "Shop Front", Operation: "web"}, Mender{}
	m.Mend(k, "")
	if m.Release(); cap(m.rewritten) == 0 || cap(m.rewritten) > KeptBytes {
		t.Errorf("%d bytes are kept", cap(m.rewritten))
	}
}

// TestWhatIsOnlyCutIsAPartOfWhatItWas: no byte of it is written.
func TestWhatIsOnlyCutIsAPartOfWhatItWas(t *testing.T) {
	long, m := strings.Repeat("é", MaxResource), Mender{}
	k := &Key{
		Service: "shop", Operation: "web", Resource: long, Type: long,
		PeerTags: []string{long, "a:" + long},
	}
	if !m.Mend(k, "") || cap(m.rewritten) != 0 {
		t.Errorf("%d bytes were written", len(m.rewritten))
	}
	if unsafe.StringData(k.Resource) != unsafe.StringData(long) || len(k.Resource) != MaxResource ||
		len(k.Type) != MaxType || len(k.PeerTags[1]) != MaxLabel {
		t.Errorf("the resource has %d bytes, the type %d, a tag %d", len(k.Resource), len(k.Type),
			len(k.PeerTags[1]))
	}
}

// TestEveryCharacterInAServiceAgrees: what is known of 256 characters together is what the
// tables of Unicode say of each.
func TestEveryCharacterInAServiceAgrees(t *testing.T) {
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		if got, want := inService(r), searchInService(r); got != want {
			t.Fatalf("%q becomes %q, want %q", r, got, want)
		}
	}
}

// BenchmarkMend says what mending takes for each byte that is kept.
func BenchmarkMend(b *testing.B) {
	for name, k := range map[string]Key{
		"capitals": {Service: "Checkout-ABCDEFGHIJKLMNOP", Operation: "web"},
		"spaces": {
			Service:   "Payment Worker #184738 (eu-west)",
			Operation: "Order Service.handle#348373 (abc)",
		},
		"unicode": {Service: "laden-äöüжшящ日本語支付注文東京", Operation: "anfrage.größe"},
		"invalid": {
			Service: "gesch\xe4ft-abc\xf6defg\xfc", Operation: "gr\xfc\xdfe.abc",
			Resource: "GET /stra\xdfe/abcdefgh\xe4abcdefgh\xe8abcd",
		},
		"long": {Service: "shop", Operation: "web", Resource: strings.Repeat("a value that is like "+
			"others, ", 300)},
		"two to one": {Service: "shop", Operation: "web", Resource: strings.Repeat("a\xff", 2500)},
	} {
		b.Run(name, func(b *testing.B) {
			var m Mender
			b.ReportAllocs()
			for range b.N {
				mended := k
				m.Mend(&mended, "go")
			}
		})
	}
}

// TestTextAgreesWithTheReference of short texts at small limits, where what must be replaced
// often lies on the limit.
func TestTextAgreesWithTheReference(t *testing.T) {
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

// TestValidAgreesWithTheStandardLibrary of everything that a character may begin with, and
// of texts of many lengths.
func TestValidAgreesWithTheStandardLibrary(t *testing.T) {
	check := func(text []byte) {
		if got, want := isValid(string(text)), utf8.Valid(text); got != want {
			t.Fatalf("%q is valid: %t", text, got)
		}
	}
	edges := []byte{0, 'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff}
	for first := range 256 {
		for second := range 256 {
			check([]byte{byte(first), byte(second)})
			for _, third := range edges {
				check([]byte{byte(first), byte(second), third})
				for _, fourth := range edges {
					check([]byte{byte(first), byte(second), third, fourth})
				}
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, 11))
	parts := []string{"a", "some words ", "é", "日", "🍣", "\xff", "\xe6\x97", "\x80"}
	for range 200_000 {
		text, most := []byte(nil), 1+rnd.IntN(len(parts))
		for range rnd.IntN(40) {
			text = append(text, parts[rnd.IntN(most)]...)
		}
		check(text)
	}
}
