package testcycle

import (
	"strings"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Reports records what a cycle's delivery reports, in order.
type Reports struct {
	mu    sync.Mutex
	words []string
}

// Watch records what is reported of a cycle. It is called before the cycle is accepted.
func Watch(sealed *aggregate.Sealed) *Reports {
	t := &Reports{}
	sealed.Delivery = aggregate.NewWatchedDelivery(func(is bool) {
		if is {
			t.add("doubtful")
		} else {
			t.add("clear")
		}
	}, func() { t.add("settled") })
	return t
}

func (t *Reports) add(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words = append(t.words, word)
}

// String has the words "doubtful", "clear" and "settled" in the order of the reports.
func (t *Reports) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.words, " ")
}
