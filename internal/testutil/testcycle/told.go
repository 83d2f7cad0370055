package testcycle

import (
	"strings"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Told records what a cycle's delivery reports, in order.
type Told struct {
	mu    sync.Mutex
	words []string
}

// Watch records what is reported of a cycle. It is called before the cycle is accepted.
func Watch(sealed *aggregate.Sealed) *Told {
	t := &Told{}
	sealed.Delivery = aggregate.NewWatchedDelivery(func(is bool) {
		if is {
			t.add("doubtful")
		} else {
			t.add("clear")
		}
	}, func() { t.add("settled") })
	return t
}

func (t *Told) add(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words = append(t.words, word)
}

// String has the words "doubtful", "clear" and "settled" in the order of the reports.
func (t *Told) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.words, " ")
}
