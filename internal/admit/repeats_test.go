package admit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// inIntervals publishes, in a daemon that has room for two resources, one letter a batch: a
// capital by number, one after an exclamation mark as a second try. A comma ends an interval.
func inIntervals(t *testing.T, letters string) (rows map[string]uint64) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = 2 })
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		for _, letter := range letters {
			body := spans(1, key(string(letter)))
			switch {
			case letter == ',':
				time.Sleep(10 * time.Second)
				synctest.Wait()
				continue
			case letter == '!':
				p.finder.isRetry = true
				continue
			case letter >= 'A' && letter <= 'Z':
				if err := p.Define(uint32(letter), key(string(letter))); err != nil {
					t.Fatal(err)
				}
				body = bodyOf(1, func(_ int, frame []byte) []byte {
					return wire.AppendNumbered(frame, uint32(letter), 1000, time.Now().UnixNano(), 0, 1)
				})
			}
			if reason, ok := h.offer(p, body); !ok {
				t.Fatalf("a batch was refused as %s", reason)
			}
		}
		h.stop(p)
		rows = h.rows
	})
	return rows
}

// TestAKeyThatWaitsIsLookedUpAtEachUse: its first span is counted under the collapsed key, and
// those after its second under its name.
func TestAKeyThatWaitsIsLookedUpAtEachUse(t *testing.T) {
	for _, letters := range []string{"abbb", "ABBB", "abBb"} {
		if rows := inIntervals(t, letters); rows[letters[3:]]+rows["b"]+rows["B"] < 2 ||
			rows[span.Blocked] > 2 {
			t.Errorf("%s became %v", letters, rows)
		}
	}
}

// TestAKeyThatComesTwiceHasItsPlaceKept, also while others use up the budget in the next
// interval before it comes.
func TestAKeyThatComesTwiceHasItsPlaceKept(t *testing.T) {
	for _, letters := range []string{"aa,xyya", "AA,xyyA"} {
		if rows := inIntervals(t, letters); rows[letters[:1]] != 3 {
			t.Errorf("%s became %v", letters, rows)
		}
	}
}

// TestASecondTryIsNoSecondUse: nor is it a second sight of what waits.
func TestASecondTryIsNoSecondUse(t *testing.T) {
	for letters, want := range map[string]uint64{"a!a,xyya": 2, "A!A,xyyA": 2, "xb!bb": 1} {
		name := letters[:1]
		if name == "x" {
			name = "b"
		}
		if rows := inIntervals(t, letters); rows[name] != want {
			t.Errorf("%s became %v", letters, rows)
		}
	}
}
