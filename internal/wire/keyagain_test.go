package wire

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// neighbour is a key that differs from another in some labels.
func neighbour(rnd *rand.Rand, k span.Key) span.Key {
	text := func() string {
		return []string{"", "a", fmt.Sprint("label ", rnd.IntN(4)), strings.Repeat("long", rnd.IntN(90))}[rnd.IntN(4)]
	}
	for range rnd.IntN(3) {
		*k.Text(span.Label(rnd.IntN(int(span.FirstList)))) = text()
	}
	switch rnd.IntN(8) {
	case 0:
		k.TraceRoot = span.TraceRoot(rnd.IntN(3))
	case 1:
		k.HTTPStatus = rnd.Uint32() >> rnd.IntN(32)
	case 2:
		k.PeerTags = nil
		for range rnd.IntN(4) {
			k.PeerTags = append(k.PeerTags, text())
		}
	case 3:
		k.Synthetics, k.AdditionalTags = rnd.IntN(2) == 0, nil
	case 4:
		k.AdditionalTags = []string{text()}
	}
	return k
}

// damaged is a key's bytes, of which some are wrong.
func damaged(rnd *rand.Rand, raw []byte) []byte {
	switch rnd.IntN(12) {
	case 0:
		raw = raw[:rnd.IntN(len(raw))]
	case 1:
		raw = append(raw, byte(rnd.Uint32()))
	case 2:
		raw[rnd.IntN(len(raw))] = byte(rnd.Uint32())
	}
	return raw
}

// TestAKeyIsReadAgainAsItWouldBeByItself: whatever the last one was, and whatever was done to
// those of its labels that are not kept.
func TestAKeyIsReadAgainAsItWouldBeByItself(t *testing.T) {
	const steps = 200_000
	rnd := rand.New(rand.NewPCG(1, 20))
	var r KeyReader
	var got, want, next span.Key
	kept, last, cameAgain := span.Labels(0), span.Key{}, 0
	for step := range steps {
		if next = neighbour(rnd, next); rnd.IntN(100) == 0 {
			r.Forget()
		}
		raw := damaged(rnd, AppendKey(nil, &next))
		again, err := r.Read(&got, raw, kept)
		if wantErr := ReadKey(&want, raw); fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("step %d: %x: %v, want %v", step, raw, err, wantErr)
		}
		if again&^kept != 0 {
			t.Fatalf("step %d: %b came again of %b", step, again, kept)
		}
		if !reflect.DeepEqual(shown(&got), shown(&want)) {
			t.Fatalf("step %d: %x: %+v, want %+v", step, raw, got, want)
		}
		kept = span.Labels(rnd.Uint32()) & (1<<span.FirstList - 1)
		for l := range span.FirstList {
			if again.Has(l) {
				if cameAgain++; *want.Text(l) != *last.Text(l) {
					t.Fatalf("step %d: %q came again as %q", step, *last.Text(l), *want.Text(l))
				}
			}
			if !kept.Has(l) && err == nil && (*got.Text(l) != "" || l <= span.LabelResource) {
				*got.Text(l) = "mended"
			}
		}
		if err == nil {
			for _, tags := range [][]string{got.PeerTags, got.AdditionalTags} {
				for i := range tags {
					tags[i] = "mended"
				}
			}
		}
		last = want
	}
	if cameAgain < steps/4 {
		t.Errorf("%d labels came again", cameAgain)
	}
}

// shown is a key in which no list differs from an empty one.
func shown(k *span.Key) span.Key {
	k2 := *k
	k2.PeerTags, k2.AdditionalTags = append([]string{}, k.PeerTags...), append([]string{}, k.AdditionalTags...)
	return k2
}

// TestAForgottenKeyMayBeWrittenOver: what stands in its place then is another key.
func TestAForgottenKeyMayBeWrittenOver(t *testing.T) {
	var r KeyReader
	var k span.Key
	raw := AppendKey(nil, &span.Key{Service: "one", Operation: "op", Resource: "r"})
	if _, err := r.Read(&k, raw, 0); err != nil {
		t.Fatal(err)
	}
	r.Forget()
	copy(raw, AppendKey(nil, &span.Key{Service: "two", Operation: "op", Resource: "r"}))
	if again, err := r.Read(&k, raw, 1<<span.FirstList-1); again != 0 || err != nil || k.Service != "two" {
		t.Errorf("%+v is read, of which %b came again; %v", k, again, err)
	}
}
