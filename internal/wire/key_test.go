package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// reused is reused for each key, like the key of a connection.
var reused span.Key

// decodeKey decodes a copy of the bytes into a new key.
func decodeKey(raw []byte) (k span.Key, err error) {
	err = ReadKey(&k, bytes.Clone(raw))
	return k, err
}

// sameKey reports whether two keys are equal; nil and empty lists are.
func sameKey(a, b *span.Key) bool {
	return string(AppendKey(nil, a)) == string(AppendKey(nil, b))
}

// checkKey compares the decoder with the reference for one encoded key, and checks that the canonical encoding decodes
// to the same key.
func checkKey(t *testing.T, raw []byte) (wellFormed bool) {
	t.Helper()
	want, ok := referenceKey(raw)
	got, err := decodeKey(raw)
	if !ok {
		if again := ReadKey(&reused, raw); again == nil || again.Error() != err.Error() ||
			!sameKey(&reused, &span.Key{}) {
			t.Fatalf("%x: read into a key that was used before: %+v, %v", raw, reused, again)
		}
		if !errors.Is(err, ErrMalformed) {
			t.Fatalf("%x: error %v, want ErrMalformed as the reference refuses it", raw, err)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%x: %v, where the reference reads it", raw, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%x:\n got %+v\nwant %+v", raw, got, want)
	}
	if err := ReadKey(&reused, raw); err != nil || !sameKey(&reused, &got) {
		t.Fatalf("%x: read into a key that was used before: %+v, %v, want %+v", raw, reused, err, got)
	}
	canonical := AppendKey(nil, &got)
	if len(canonical) > len(raw) {
		t.Fatalf("canonical %x is longer than %x", canonical, raw)
	}
	again, err := decodeKey(canonical)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Fatalf("canonical %x decodes to %+v, error %v, want %+v", canonical, again, err, got)
	}
	return true
}

func TestDecodeKey_AgreesWithLibrary(t *testing.T) {
	keys := 20_000
	if testing.Short() {
		keys = 2_000
	}
	for _, mistakes := range []bool{false, true} {
		g := newGenerator(11, mistakes)
		well, ill := 0, 0
		for range keys {
			k := g.key()
			if checkKey(t, g.rawKey(&k)) {
				well++
			} else {
				ill++
			}
		}
		if well == 0 || mistakes == (ill == 0) {
			t.Errorf("with mistakes %v the generator made %d well formed keys and %d others", mistakes, well,
				ill)
		}
	}
}

func TestAppendKey_EqualKeysHaveEqualBytes(t *testing.T) {
	g := newGenerator(13, false)
	for range 2_000 {
		k := g.key()
		canonical := string(AppendKey(nil, &k))
		for range 4 {
			raw := g.rawKey(&k)
			decoded, err := decodeKey(raw)
			if err != nil {
				t.Fatalf("decode %x: %v", raw, err)
			}
			if got := string(AppendKey(nil, &decoded)); got != canonical {
				t.Fatalf("%x and %x mean the same key", got, canonical)
			}
		}
	}
}

func TestAppendKey_EndsWithLastSetLabel(t *testing.T) {
	for _, c := range []struct {
		elements int
		set      func(k *span.Key)
	}{
		{3, func(*span.Key) {}},
		{3, func(k *span.Key) { k.PeerTags, k.AdditionalTags = []string{}, []string{} }},
		{3, func(k *span.Key) { k.TraceRoot = 3 }},
		{4, func(k *span.Key) { k.Type = "x" }},
		{5, func(k *span.Key) { k.Kind = "x" }},
		{6, func(k *span.Key) { k.TraceRoot = span.TraceRootFalse }},
		{7, func(k *span.Key) { k.HTTPStatus = 1 }},
		{8, func(k *span.Key) { k.PeerTags = []string{""} }},
		{9, func(k *span.Key) { k.HTTPMethod = "x" }},
		{10, func(k *span.Key) { k.HTTPEndpoint = "x" }},
		{11, func(k *span.Key) { k.GRPCStatus = "x" }},
		{12, func(k *span.Key) { k.ServiceSource = "x" }},
		{13, func(k *span.Key) { k.Synthetics = true }},
		{14, func(k *span.Key) { k.AdditionalTags = []string{"x"} }},
	} {
		var k span.Key
		c.set(&k)
		if raw := AppendKey(nil, &k); raw[0] != msgpack.FixArray|byte(c.elements) {
			t.Errorf("%+v has lead byte 0x%02x, want %d elements", k, raw[0], c.elements)
		}
	}
}

func TestAppendKey_WritesReadableNumberOfTags(t *testing.T) {
	k := span.Key{PeerTags: make([]string, 1000)}
	decoded, err := decodeKey(AppendKey(nil, &k))
	if err != nil || len(decoded.PeerTags) != maxKeyTags {
		t.Errorf("%d tags, error %v, want %d", len(decoded.PeerTags), err, maxKeyTags)
	}
}

func TestDecodeKey_ErrorNamesLabel(t *testing.T) {
	_, err := decodeKey([]byte{0x94, 0xa0, 0xa0, 0xa0, 0x07})
	if err == nil || !strings.Contains(err.Error(), "element 3: expected the type") {
		t.Errorf("error %v, want it to name element 3, the type", err)
	}
}
