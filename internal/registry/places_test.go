package registry

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestPlacesAreThoseOfLabels: whatever finds a row or none, a budget has as many places taken as
// there are labels that have one. What had to give its place back is known when it comes again,
// and the memory of its tag key is used again.
func TestPlacesAreThoseOfLabels(t *testing.T) {
	config := DefaultConfig()
	config.MaxAggregates = 16
	r := NewIntervals(&config).Registry()
	id, _ := r.AdmitOrigin(span.Origin{})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		n := rnd.IntN(400)
		r.Admit(id, &span.Key{
			Service: fmt.Sprint("s", n%7), Resource: fmt.Sprint("word ", n), HTTPStatus: uint32(n % 90),
			PeerTags: []string{fmt.Sprintf("key%d:%d", n%100, n), fmt.Sprint("host:", n)},
		}, false)
	}
	taken, ofTagKey := map[int32]int{}, map[labelID]int{}
	for i := range r.tables.labels.list {
		if l := &r.tables.labels.list[i]; !l.isBlocked && labelID(i) >= firstID {
			taken[l.scope.kind]++
			ofTagKey[l.tagKey]++
		}
	}
	for kind, budget := range r.tables.origins.list[id].budgets {
		if want := taken[int32(kind)]; !isList(span.Label(kind)) && budget.others != want {
			t.Errorf("kind %d has %d places taken by %d labels", kind, budget.others, want)
		}
	}
	for i := range r.tables.labels.list {
		if l := &r.tables.labels.list[i]; l.tags != nil && l.tags.others != ofTagKey[labelID(i)] {
			t.Errorf("%s has %d places taken by %d tags", l.text, l.tags.others, ofTagKey[labelID(i)])
		}
	}
	last := &span.Key{Service: "s1", Resource: "word last", PeerTags: []string{"last:v"}}
	if a := r.Admit(id, last, false); !a.Collapsed.Has(span.WholeKey) || len(r.judge.spare) == 0 {
		t.Errorf("it is %+v, and %d tag keys are spare", a, len(r.judge.spare))
	}
	name := labelName{scope{id, int32(span.LabelResource)}, last.Resource}
	identity := r.tables.origins.list[id].identityOf(name)
	if !r.tables.seen.has(identity)[r.tables.generation] {
		t.Error("what gave its place back is not known")
	}
}
