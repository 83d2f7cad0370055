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
)

// TestFingerprint_DiffersIfAnyPartDoes also checks that a fingerprint is empty if its parts are too
// long.
func TestFingerprint_DiffersIfAnyPartDoes(t *testing.T) {
	type parts struct {
		policy rules.PolicyID
		facts  uint32
		texts  []string
		tags   []spantable.Tag
	}
	table := &spantable.Table{}
	table.Reset([]byte("abc"), spantable.LimitsOf(3, 8))
	text := func(at, n uint32) uint64 { return spantable.TextBits(spantable.Text{Start: at, Len: n}) }
	long := strings.Repeat("x", rules.MaxFingerprint-32)
	tags := make([]spantable.Tag, rules.MaxFingerprint)
	seen := map[string]int{}
	for i, one := range []parts{
		{facts: 1},
		{facts: 2},
		{policy: 1},
		{policy: 2},
		{facts: 1, texts: []string{"a"}},
		{facts: 1, texts: []string{"a", "b"}},
		{facts: 1, texts: []string{"ab", ""}},
		{facts: 1, texts: []string{"", "ab"}},
		{tags: []spantable.Tag{{Label: 1, Type: spantable.TypeText, Bits: text(0, 1)}}},
		{tags: []spantable.Tag{{Label: 2, Type: spantable.TypeText, Bits: text(0, 1)}}},
		{tags: []spantable.Tag{{Label: 1, Type: spantable.TypeText, Bits: text(1, 1)}}},
		{tags: []spantable.Tag{{Label: 1, Type: spantable.TypeText, Bits: text(0, 2)}}},
		{tags: []spantable.Tag{{Label: 1, Type: spantable.TypeBytes, Bits: text(0, 1)}}},
		{tags: []spantable.Tag{{Label: 1, Type: spantable.TypeInteger, Bits: 1}}},
		{tags: []spantable.Tag{{Label: 1, Type: spantable.TypeInteger, Bits: 2}}},
		{tags: []spantable.Tag{{Label: 1, Type: spantable.TypeBool, Bits: 1}}},
		{texts: []string{long}},
		{texts: []string{long[1:] + "y"}},
		{texts: []string{long, "y"}},
		{texts: []string{long + long, "y"}},
		{tags: tags},
	} {
		f := &rules.Fingerprint{}
		f.AppendText(long + long) // an earlier span
		f.Reset(one.policy, one.facts)
		size := 8
		for _, text := range one.texts {
			f.AppendText(text)
			size += 8 + len(text)
		}
		for j := range one.tags {
			f.AppendTag(table, &one.tags[j])
			if size += 16; one.tags[j].HasText() {
				size += int(one.tags[j].Text().Len) - 8
			}
		}
		got := string(f.Bytes())
		if isLong := size > rules.MaxFingerprint; (got == "") != isLong || f.Size() != uint32(size) {
			t.Errorf("parts %d of %d bytes have a fingerprint of %d, and report %d", i, size, len(got), f.Size())
		}
		if other, isKnown := seen[got]; isKnown && got != "" {
			t.Errorf("parts %d and %d have the fingerprint %q", other, i, got)
		}
		seen[got] = i
	}
	if one, other := rules.NewPolicyID(), rules.NewPolicyID(); one == other {
		t.Errorf("two policies have the ID %d", one)
	}
}

// TestBatches_PerOriginAndService expects batches in the order of their first spans, for at most
// MaxOrigins origins and the common one.
func TestBatches_PerOriginAndService(t *testing.T) {
	b := &rules.Batches{}
	for round := range 2 { // the second round reuses the memory of the first
		b.Reset(nil)
		for i := range 2 * rules.MaxOrigins {
			number, ok := b.FindOrAdd(rules.BatchID{
				Origin:  i % rules.MaxOrigins,
				Service: fmt.Sprint("service ", i%2),
			})
			if want := i % rules.MaxOrigins; number != want || !ok {
				t.Fatalf("the batch %d is %d, %v", want, number, ok)
			}
			b.AddSnapshot(number, []byte(fmt.Sprint("key ", i)), span.Snapshot{Duration: uint64(i), Weight: 1})
		}
		for _, more := range []string{"service 1", "service 2"} {
			if _, ok := b.FindOrAdd(rules.BatchID{Service: more}); ok {
				t.Errorf("round %d: a batch of %s was started", round, more)
			}
		}
		seen := 0
		for from, batch := range b.All {
			origin, service := from.Origin, from.Service
			var got []string
			for i := range batch.Snapshots {
				got = append(got,
					fmt.Sprint(string(batch.FingerprintOf(&batch.Snapshots[i])), " ", batch.Snapshots[i].Duration))
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
		if seen != rules.MaxOrigins || b.Count() != seen || b.FingerprintBytes() == 0 {
			t.Errorf("there are %d batches", seen)
		}
		for range 2 {
			if n, ok := b.FindOrAdd(rules.BatchID{Origin: rules.CommonOrigin}); n != rules.MaxOrigins || !ok {
				t.Errorf("the common batch is %d, %v", n, ok)
			}
		}
	}
}

// TestBatches_ReleasedHoldNothing checks that released batches do not retain the last body, nor the
// memory of a very large one.
func TestBatches_ReleasedHoldNothing(t *testing.T) {
	b := &rules.Batches{}
	var memory weak.Pointer[byte]
	for _, size := range []int{1, 4<<20 + 1} {
		number, _ := b.FindOrAdd(rules.BatchID{Service: "a service"})
		if b.AddSnapshot(number, make([]byte, size), span.Snapshot{}); b.FingerprintBytes() != size {
			t.Fatalf("%d bytes of fingerprints", b.FingerprintBytes())
		}
		for _, batch := range b.All {
			memory = weak.Make(&batch.Fingerprints[0])
		}
		if b.Release(); b.Count() != 0 || b.FingerprintBytes() != 0 {
			t.Errorf("%d batches are left", b.Count())
		}
	}
	if runtime.GC(); memory.Value() != nil {
		t.Error("the memory of a very large body was kept")
	}
	runtime.KeepAlive(b)
}
