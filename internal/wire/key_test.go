package wire

import (
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// reused is read into again and again, as a connection does.
var reused span.Key

// sameKey compares two keys, of which the lists may be empty in another way.
func sameKey(a, b *span.Key) bool {
	return string(AppendKey(nil, a)) == string(AppendKey(nil, b))
}

// checkKey compares the decoder with the reference on the bytes of one key, and
// with itself on its own canonical bytes.
func checkKey(t *testing.T, raw []byte) (wellFormed bool) {
	t.Helper()
	want, ok := referenceKey(raw)
	checkOutline(t, raw, &want, ok)
	got, err := DecodeKey(raw)
	if !ok {
		if again := ReadKey(&reused, raw); again == nil || again.Error() != err.Error() || !sameKey(&reused, &span.Key{}) {
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
	again, err := DecodeKey(canonical)
	if err != nil || !reflect.DeepEqual(again, got) {
		t.Fatalf("canonical %x decodes to %+v, error %v, want %+v", canonical, again, err, got)
	}
	return true
}

// outlined counts the keys whose outline was compared, and repeated those of which the
// middle was not noted again.
var outlined, repeated atomic.Int64

// used is outlined into again and again, as a connection does.
var used struct {
	span.Outline
	middle     uint64 // the last one noted
	typ        string // its
	kind       string
	afterwards []byte // scratch
}

// checkOutline compares a key's outline, if it has one, with the key: a fresh one, one
// that was used for other keys, and then of keys with the same middle.
func checkOutline(t *testing.T, raw []byte, want *span.Key, wellFormed bool) {
	t.Helper()
	o := span.Outline{
		Labels: [9]span.Part{{From: 1, To: 2}, 8: {From: 1, To: 2}}, Peers: 3, HTTPStatus: 7,
		TraceRoot: span.TraceRootTrue, Synthetics: true,
	} // as one that was used before
	for i := range o.PeerTags {
		o.PeerTags[i] = span.Part{From: 1, To: 1 << 20}
	}
	has := OutlineKey(&o, raw)
	if o.Repeats {
		t.Fatalf("%x repeats what was never there", raw)
	}
	if again := checkUsedOutline(t, raw, want); again != has {
		t.Fatalf("%x has an outline: %t, and %t after others", raw, has, again)
	}
	if !has {
		return
	}
	outlined.Add(1)
	if !wellFormed {
		t.Fatalf("%x has an outline, where the reference refuses it", raw)
	}
	text := func(p span.Part) string { return p.Of(string(raw)) }
	compareOutline(t, raw, &o, text(o.Labels[3]), text(o.Labels[4]), want)
	for _, service := range []string{"shop", "another shop"} {
		other := *want
		other.Service = service
		used.afterwards = AppendKey(used.afterwards[:0], &other)
		checkUsedOutline(t, used.afterwards, &other)
	}
}

func checkUsedOutline(t *testing.T, raw []byte, want *span.Key) (has bool) {
	t.Helper()
	has = OutlineKey(&used.Outline, raw)
	if used.Middle != used.middle {
		if used.Repeats {
			t.Fatalf("%x repeats middle %d, the last one is %d", raw, used.Middle, used.middle)
		}
		used.middle, used.typ, used.kind = used.Middle, used.Labels[3].Of(string(raw)), used.Labels[4].Of(string(raw))
	}
	if !has {
		return false
	}
	middle := [2]string{used.typ, used.kind}
	if used.Repeats {
		repeated.Add(1)
	} else {
		middle = [2]string{used.Labels[3].Of(string(raw)), used.Labels[4].Of(string(raw))}
	}
	compareOutline(t, raw, &used.Outline, middle[0], middle[1], want)
	return true
}

func compareOutline(t *testing.T, raw []byte, o *span.Outline, typ, kind string, want *span.Key) {
	t.Helper()
	var texts [9]string
	for i, part := range o.Labels {
		if i != 3 && i != 4 {
			texts[i] = part.Of(string(raw))
		}
	}
	var tags []string
	for _, part := range o.PeerTags[:o.Peers] {
		tags = append(tags, part.Of(string(raw)))
	}
	got := span.Key{
		Service: texts[0], Operation: texts[1], Resource: texts[2], Type: typ, Kind: kind,
		HTTPMethod: texts[5], HTTPEndpoint: texts[6], GRPCStatus: texts[7], ServiceSource: texts[8],
		HTTPStatus: o.HTTPStatus, TraceRoot: o.TraceRoot, Synthetics: o.Synthetics, PeerTags: tags,
	}
	if !sameKey(&got, want) {
		t.Fatalf("%x:\n outline %+v\nwant %+v", raw, got, *want)
	}
	if more := texts[5]+texts[6]+texts[7]+texts[8] != ""; more && !o.HasMore {
		t.Fatalf("%x has more, which its outline does not say", raw)
	}
}

func TestDecodeKeyAgreesWithTheLibrary(t *testing.T) {
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
			t.Errorf("with mistakes %v the generator made %d well formed keys and %d others", mistakes, well, ill)
		}
		if outlined.Swap(0) == 0 || repeated.Swap(0) == 0 {
			t.Errorf("with mistakes %v no key had an outline, or none repeated a middle", mistakes)
		}
	}
}

func TestEqualKeysHaveEqualBytes(t *testing.T) {
	g := newGenerator(13, false)
	for range 2_000 {
		k := g.key()
		canonical := string(AppendKey(nil, &k))
		for range 4 {
			raw := g.rawKey(&k)
			decoded, err := DecodeKey(raw)
			if err != nil {
				t.Fatalf("decode %x: %v", raw, err)
			}
			if got := string(AppendKey(nil, &decoded)); got != canonical {
				t.Fatalf("%x and %x mean the same key", got, canonical)
			}
		}
	}
}

func TestAppendKeyEndsWithTheLastLabelThatIsSet(t *testing.T) {
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

func TestAppendKeyWritesNoMoreTagsThanAreRead(t *testing.T) {
	k := span.Key{PeerTags: make([]string, 1000)}
	decoded, err := DecodeKey(AppendKey(nil, &k))
	if err != nil || len(decoded.PeerTags) != maxKeyTags {
		t.Errorf("%d tags, error %v, want %d", len(decoded.PeerTags), err, maxKeyTags)
	}
}

func TestDecodedLabelsAreCopies(t *testing.T) {
	want := span.Key{Service: "shop", Operation: "job", Resource: "run", PeerTags: []string{"a:b"}}
	raw := AppendKey(nil, &want)
	got, err := DecodeKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("after the bytes were reused the key is %+v", got)
	}
}

func TestDecodeKeyErrorNamesTheLabel(t *testing.T) {
	_, err := DecodeKey([]byte{0x94, 0xa0, 0xa0, 0xa0, 0x07})
	if err == nil || !strings.Contains(err.Error(), "element 3: expected the type") {
		t.Errorf("error %v, want it to name element 3, the type", err)
	}
}
