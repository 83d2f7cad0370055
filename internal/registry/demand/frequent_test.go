package demand_test

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/registry/demand"
)

// TestFrequent_FindsValuesInFlood mixes three frequent values into a flood of values that are used once,
// and compares the result with exact counts.
func TestFrequent_FindsValuesInFlood(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(1, seed))
		var frequent demand.Frequent
		exact := map[string]uint64{}
		for i := range 20_000 {
			value := fmt.Sprint("rare", i)
			switch random.IntN(10) {
			case 0, 1, 2:
				value = "first"
			case 3, 4:
				value = "second"
			case 5:
				value = "third"
			}
			frequent.Add(hashOf(value), value, 2)
			exact[value] += 2
		}
		top := frequent.Top(3)
		for i, want := range []string{"first", "second", "third"} {
			if top[i].Text != want {
				t.Errorf("seed %d: value %d is %q instead of %q", seed, i, top[i].Text, want)
			}
			if top[i].Uses > exact[want] || top[i].Uses < exact[want]*8/10 {
				t.Errorf("seed %d: %q has %d uses, and Top returns %d", seed, want, exact[want], top[i].Uses)
			}
		}
	}
}

// TestFrequent_UsesAreLowerLimit checks that a value never has fewer uses than Top returns.
func TestFrequent_UsesAreLowerLimit(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	var frequent demand.Frequent
	exact := map[string]uint64{}
	for range 10_000 {
		value := fmt.Sprint(int(random.ExpFloat64() * 100))
		uses := 1 + random.Uint64N(3)
		frequent.Add(hashOf(value), value, uses)
		exact[value] += uses
	}
	top := frequent.Top(100)
	if len(top) != 16 {
		t.Errorf("Top returns %d values", len(top))
	}
	for _, value := range top {
		if value.Uses > exact[value.Text] {
			t.Errorf("%q has %d uses, and Top returns %d", value.Text, exact[value.Text], value.Uses)
		}
	}
}

func TestFrequent_TruncatesLongValues(t *testing.T) {
	var frequent demand.Frequent
	long := strings.Repeat("é", demand.MaxValueBytes) + "x"
	frequent.Add(hashOf("x"+long), "x"+long, 1)
	got := frequent.Top(1)[0].Text
	if len(got) != demand.MaxValueBytes-1 || !utf8.ValidString(got) {
		t.Errorf("a long value became %q with %d bytes", got, len(got))
	}
}

// TestFrequent_FloodDoesNotAllocate checks that new values reuse the memory of the values they replace.
func TestFrequent_FloodDoesNotAllocate(t *testing.T) {
	var frequent demand.Frequent
	text := strings.Repeat("v", 2*demand.MaxValueBytes)
	hash := uint64(0)
	for range 1000 {
		hash++
		frequent.Add(hash, text, 1)
	}
	allocations := testing.AllocsPerRun(1000, func() {
		hash++
		frequent.Add(hash, text, 1)
	})
	if allocations != 0 {
		t.Errorf("a new value allocates %.0f times", allocations)
	}
}

var seed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(seed, text) }
