package admit

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestAKeyThatLostLabelsIsKeptWhenItComesAgain: whether they collapsed or have masks.
func TestAKeyThatLostLabelsIsKeptWhenItComesAgain(t *testing.T) {
	for _, resource := range []string{"one more", "GET /users/17"} {
		h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = 2 })
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		publish := func(resource string) (known int) {
			if reason, ok := h.offer(p, spans(1, key(resource))); !ok {
				t.Fatalf("a batch was refused as %s", reason)
			}
			return len(p.finder.keys.known)
		}
		for i := range 40 {
			publish("word " + string(rune('a'+i%20))) // until no place is left
		}
		before := len(p.finder.keys.known)
		for i, want := range []int{before, before + 1, before + 1} {
			if known := publish(resource); known != want {
				t.Errorf("after coming %d times more %d keys are known, want %d", i, known, want)
			}
		}
		h.stop(p)
	}
}
