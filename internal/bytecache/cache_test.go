package bytecache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// look looks for a source.
func (c *Cache) look(source string) ([]byte, Place) {
	return c.Find(copy(c.Source[:], source))
}

func made() *Cache {
	c := &Cache{}
	c.Reset()
	return c
}

// TestWhatIsRememberedIsWhatWasMade of the same source, whatever came in between.
func TestWhatIsRememberedIsWhatWasMade(t *testing.T) {
	rnd, c, found := rand.New(rand.NewPCG(1, 2)), made(), 0
	makeOf := func(source string) []byte { return []byte(strings.ToUpper(source) + source) }
	for range 200_000 {
		source := fmt.Sprint(strings.Repeat("s", rnd.IntN(350)), rnd.IntN(40))
		got, at := c.look(source)
		want := makeOf(source)
		if got == nil {
			c.Keep(at, want)
			got, _ = c.look(source)
		} else {
			found++
		}
		fits := len(source)+len(want) <= MaxText
		if fits && !bytes.Equal(got, want) || !fits && got != nil {
			t.Fatalf("of %q: %q", source, got)
		}
	}
	if found < 1000 {
		t.Errorf("%d were found", found)
	}
}

// TestSourcesWithOneHashAreTwo: a hash only says where to look. What is there is decided by
// the source.
func TestSourcesWithOneHashAreTwo(t *testing.T) {
	c := made()
	const one, other = "a source of one", "a source of two" // which begin alike
	_, at := c.look(other)                                  // whose hash the other gets
	at.source = copy(c.Source[:], one)
	c.Keep(at, []byte("made"))
	if got, _ := c.look(other); got != nil {
		t.Errorf("what was made of %q is found by %q", one, other)
	}
	_, at = c.look(other)
	c.Keep(at, []byte("another"))
	if got, _ := c.look(other); string(got) != "another" {
		t.Errorf("what was kept is %q", got)
	}
}

// TestWhatIsForgottenIsNotFound.
func TestWhatIsForgottenIsNotFound(t *testing.T) {
	c := made()
	_, at := c.look("source")
	c.Keep(at, []byte("made"))
	c.Reset()
	if got, _ := c.look("source"); got != nil {
		t.Errorf("%q is left", got)
	}
}

// TestItIsBounded: whoever makes up sources makes it hold no more than it may.
func TestItIsBounded(t *testing.T) {
	c := made()
	for i := range 20 * Slots {
		_, at := c.look(fmt.Sprint(strings.Repeat("s", i%(MaxSource-8)), i))
		c.Keep(at, bytes.Repeat([]byte{'m'}, i%MaxText))
	}
	held, used := 0, 0
	for i := range c.slots {
		held += cap(c.slots[i].text) + slotBytes
		if c.slots[i].source > 0 {
			used++
		}
	}
	if used < Slots/2 || held > Bytes {
		t.Errorf("%d slots of %d are used, with %d bytes of %d", used, Slots, held, Bytes)
	}
}

// TestNothingIsAllocatedForWhatIsKnown.
func TestNothingIsAllocatedForWhatIsKnown(t *testing.T) {
	c := made()
	_, at := c.look("source")
	c.Keep(at, []byte("made"))
	if n := testing.AllocsPerRun(100, func() {
		if got, _ := c.look("source"); got == nil {
			t.Fatal("not found")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
