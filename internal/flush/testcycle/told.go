package testcycle

import (
	"strings"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Told is what a cycle's delivery has told, in order.
type Told struct {
	mu    sync.Mutex
	words []string
}

// Watch has a cycle tell it. It comes before the cycle is accepted.
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

// String is the words "doubtful", "clear" and "settled" as they were told.
func (t *Told) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.words, " ")
}
