package rules_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// source is what a key is made of.
type source struct {
	facts uint64
	texts []string
	tags  []spantable.Tag
}

// keyOf is the key of a source, by k, and whether that knew it.
func keyOf(k *rules.Keys, t *spantable.Table, s source, made *span.Key) (key string, isKnown bool) {
	k.Begin(s.facts)
	for _, text := range s.texts {
		k.Put([]byte(text))
	}
	for i := range s.tags {
		if !k.PutTag(t, &s.tags[i]) {
			break
		}
	}
	if key := k.Find(); key != nil {
		return string(key), true
	}
	key = string(k.Encode(made))
	k.Keep()
	return key, false
}

// TestAKeyIsRememberedByItsSource and by no source that differs in anything.
func TestAKeyIsRememberedByItsSource(t *testing.T) {
	table := &spantable.Table{}
	table.Reset([]byte("abc"), spantable.LimitsOf(3, 8))
	text := func(at, n uint32) uint64 { return spantable.TextBits(spantable.Text{At: at, Len: n}) }
	long := strings.Repeat("x", rules.MaxSource+64)
	sources := []source{
		{facts: 1},
		{facts: 2},
		{facts: 1, texts: []string{"a"}},
		{facts: 1, texts: []string{"a", "b"}},
		{tags: []spantable.Tag{{Label: 1, Value: spantable.IsText, Bits: text(0, 1)}}},
		{tags: []spantable.Tag{{Label: 2, Value: spantable.IsText, Bits: text(0, 1)}}},
		{tags: []spantable.Tag{{Label: 1, Value: spantable.IsText, Bits: text(1, 1)}}},
		{tags: []spantable.Tag{{Label: 1, Value: spantable.IsText, Bits: text(0, 2)}}},
		{tags: []spantable.Tag{{Label: 1, Value: spantable.IsBytes, Bits: text(0, 1)}}},
		{tags: []spantable.Tag{{Label: 1, Value: spantable.IsInteger, Bits: 1}}},
		{tags: []spantable.Tag{{Label: 1, Value: spantable.IsInteger, Bits: 2}}},
		{tags: []spantable.Tag{{Label: 1, Value: spantable.IsBool, Bits: 1}}},
		{texts: []string{long}},
		{texts: []string{long[1:], "y"}},
		{texts: []string{long, "y"}},
	}
	k := &rules.Keys{}
	k.Use(table)
	for round := range 3 {
		for i, s := range sources {
			made := &span.Key{Service: fmt.Sprint("made of ", i)}
			want := string(wire.AppendKey(nil, made))
			got, isKnown := keyOf(k, table, s, made)
			isLong := len(strings.Join(s.texts, "")) > rules.MaxSource
			if got != want || isKnown != (round > 0 && !isLong) {
				t.Errorf("round %d: source %d has the key %q, known %v", round, i, got, isKnown)
			}
		}
	}
	many := source{}
	for range rules.MaxSource {
		many.tags = append(many.tags, spantable.Tag{Label: 1, Value: spantable.IsInteger})
	}
	for range 2 {
		if _, isKnown := keyOf(k, table, many, &span.Key{}); isKnown {
			t.Error("a source that is too long is remembered")
		}
	}
}

// TestKeysAreOfOnePolicy: those of another are forgotten.
func TestKeysAreOfOnePolicy(t *testing.T) {
	k, first, second := &rules.Keys{}, new(int), new(int)
	for _, c := range []struct {
		policy  *int
		isKnown bool
	}{{first, false}, {first, true}, {second, false}, {second, true}, {first, false}} {
		k.Use(c.policy)
		if _, isKnown := keyOf(k, nil, source{facts: 1}, &span.Key{}); isKnown != c.isKnown {
			t.Errorf("known: %v", isKnown)
		}
	}
}

// TestThereIsABatchAnOriginAndService in the order in which they came, MaxOrigins at most
// and the common one.
func TestThereIsABatchAnOriginAndService(t *testing.T) {
	b := &rules.Batches{}
	for round := range 2 { // the second with the memory of the first
		b.Reset()
		for i := range 2 * rules.MaxOrigins {
			number, ok := b.Of(rules.Origin{
				Number:  i % rules.MaxOrigins,
				Service: fmt.Sprint("service ", i%2),
			})
			if want := i % rules.MaxOrigins; number != want || !ok {
				t.Fatalf("the batch %d is %d, %v", want, number, ok)
			}
			b.Add(number, []byte(fmt.Sprint("key ", i)), span.Snapshot{Duration: uint64(i), Weight: 1})
		}
		for _, more := range []string{"service 1", "service 2"} {
			if _, ok := b.Of(rules.Origin{Service: more}); ok {
				t.Errorf("round %d: a batch of %s was begun", round, more)
			}
		}
		seen := 0
		for from, batch := range b.All {
			origin, service := from.Number, from.Service
			var got []string
			for i := range batch.Snapshots {
				got = append(got,
					fmt.Sprint(string(batch.KeyOf(&batch.Snapshots[i])), " ", batch.Snapshots[i].Duration))
			}
			want := []string{
				fmt.Sprintf("key %d %d", origin, origin),
				fmt.Sprintf("key %d %d", origin+rules.MaxOrigins, origin+rules.MaxOrigins),
			}
			if !slices.Equal(got, want) || service != fmt.Sprint("service ", origin%2) || origin != seen ||
				b.Len(origin) != 2 {
				t.Errorf("origin %d of %s has %q", origin, service, got)
			}
			seen++
		}
		if seen != rules.MaxOrigins || b.Count() != seen || b.KeyBytes() == 0 {
			t.Errorf("there are %d batches", seen)
		}
		for range 2 {
			if n, ok := b.Of(rules.Origin{Number: rules.Common}); n != rules.MaxOrigins || !ok {
				t.Errorf("the common batch is %d, %v", n, ok)
			}
		}
	}
}

// TestReleasedBatchesHoldNothing of the last body, nor the memory of a very large one.
func TestReleasedBatchesHoldNothing(t *testing.T) {
	b := &rules.Batches{}
	var memory weak.Pointer[byte]
	for _, size := range []int{1, 4<<20 + 1} {
		number, _ := b.Of(rules.Origin{Service: "a service"})
		if b.Add(number, make([]byte, size), span.Snapshot{}); b.KeyBytes() != size {
			t.Fatalf("%d bytes of keys", b.KeyBytes())
		}
		for _, batch := range b.All {
			memory = weak.Make(&batch.Keys[0])
		}
		if b.Release(); b.Count() != 0 || b.KeyBytes() != 0 {
			t.Errorf("%d batches are left", b.Count())
		}
	}
	if runtime.GC(); memory.Value() != nil {
		t.Error("the memory of a very large body was kept")
	}
	runtime.KeepAlive(b)
}
