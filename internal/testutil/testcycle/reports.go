package testcycle

import (
	"strings"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Reports records the reports about the delivery of a cycle, in order.
type Reports struct {
	mu    sync.Mutex
	words []string
}

// Watch records the reports about a cycle. It must be called before an exporter accepts the cycle.
func Watch(sealed *aggregate.Sealed) *Reports {
	r := &Reports{}
	onDoubtful := func(isDoubtful bool) {
		if isDoubtful {
			r.add("doubtful")
		} else {
			r.add("clear")
		}
	}
	sealed.Delivery = aggregate.NewWatchedDelivery(onDoubtful, func() { r.add("settled") })
	return r
}

func (r *Reports) add(word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.words = append(r.words, word)
}

// String returns the reports as the words "doubtful", "clear" and "settled".
func (r *Reports) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.words, " ")
}
