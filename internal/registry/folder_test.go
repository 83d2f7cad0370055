package registry

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
	"weak"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// floodOfUsers is a value that comes once, and what it is a value of.
func floodOfUsers(rnd *rand.Rand) (value, name string) {
	uuid := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", rnd.Uint32(), rnd.IntN(1<<16), rnd.IntN(1<<12), rnd.IntN(1<<12), rnd.Uint64()>>16)
	return fmt.Sprintf("GET /users/%d/orders/%s", 100_000+rnd.IntN(1<<30), uuid), "GET /users/{id}/orders/{uuid}"
}

// folding is intervals in which a label has a budget, and what floods are drawn from.
func folding(l span.Label, budget int) (*Intervals, *rand.Rand) {
	config := testConfig()
	config.Budgets[l] = budget
	return NewIntervals(&config), rand.New(rand.NewPCG(1, 20))
}

// keyOf is a key with a value in a label.
func keyOf(l span.Label, value string) *span.Key {
	key := span.Key{Service: "shop", Operation: "serve", Resource: "all"}
	*key.Text(l) = value
	return &key
}

// shownAs is the text that a label has in the row of an admission.
func shownAs(r *Registry, a Admission, l span.Label) string {
	_, keys := r.Contents()
	return *keys[a.ID].Key.Text(l)
}

// TestAFloodHasTheNameOfItsTemplate: from the second interval on, each value of a flood has
// its template's name from its first span on; what repeats and what has no identifier keep
// their own; and a flood of words collapses.
func TestAFloodHasTheNameOfItsTemplate(t *testing.T) {
	for _, l := range folded {
		intervals, rnd := folding(l, 64)
		for interval := range 5 {
			r := intervals.Registry()
			origin, _ := r.AdmitOrigin(span.Origin{Service: "shop"})
			p := newPublisher(r, origin)
			for i := range 3000 {
				value, want := floodOfUsers(rnd)
				switch i % 3 {
				case 1:
					value = fmt.Sprintf("GET /honest/%d", i%20)
					want = value
				case 2:
					value, want = fmt.Sprintf("GET /words/%c%c%c%c", 'a'+rnd.IntN(26), 'a'+rnd.IntN(26), 'a'+rnd.IntN(26), 'a'+rnd.IntN(26)), ""
				}
				a := p.admit(keyOf(l, value))
				got := shownAs(r, a, l)
				if isFolded := got != value && got != span.Blocked; isFolded != a.Folded.Has(l) {
					t.Fatalf("%s became %s and is said to be %+v", value, got, a)
				}
				if interval > 0 && want != "" && got != want {
					t.Fatalf("%s, interval %d, value %d: %s became %s", l, interval, i, value, got)
				}
				if i%100 == 0 {
					p.lookup.Report()
				}
				if want == "" && got != value && got != span.Blocked {
					t.Fatalf("%s became %s", value, got)
				}
			}
			p.lookup.Report()
			intervals.Begin()
		}
		folding := intervals.Folding()
		if folding.Templates[l.String()] != 1 || folding.Keys[l.String()] < 4000 || folding.Keys[l.String()] > 5000 {
			t.Errorf("what is seen of it is %+v", folding)
		}
		names, more := intervals.NewTemplates()
		if _, name := floodOfUsers(rnd); len(names) != 1 || names[0] != name || more != 0 {
			t.Errorf("the news are %v and %d more", names, more)
		}
	}
}

// TestNothingIsFoldedWhereThatIsOff, nor in another label than resource and endpoint.
func TestNothingIsFoldedWhereThatIsOff(t *testing.T) {
	for _, l := range []span.Label{span.LabelResource, span.LabelType} {
		config := testConfig()
		config.FoldNames, config.Budgets[l] = l != span.LabelResource, 64
		intervals := NewIntervals(&config)
		rnd := rand.New(rand.NewPCG(1, 20))
		for range 4 {
			r := intervals.Registry()
			origin, _ := r.AdmitOrigin(span.Origin{})
			p := newPublisher(r, origin)
			for range 1000 {
				value, _ := floodOfUsers(rnd)
				if a := p.admit(keyOf(l, value)); a.Folded != 0 {
					t.Fatalf("%s became %s", value, shownAs(r, a, l))
				}
			}
			p.lookup.Report()
			intervals.Begin()
		}
		if folding := intervals.Folding(); folding.Keys["resource"] != 0 || folding.Templates["resource"] != 0 || len(folding.Keys) != len(folded) {
			t.Errorf("what is seen of it is %+v", folding)
		}
	}
}

// TestWhatRepeatedIsNotFolded: a value that had its own name and came again with it keeps
// that when a template explains it, and one that did not come again does not.
func TestWhatRepeatedIsNotFolded(t *testing.T) {
	intervals, rnd := folding(span.LabelResource, 64)
	const popular, once = "GET /users/123456/orders/550e8400-e29b-41d4-a716-446655440000", "GET /users/123457/orders/550e8400-e29b-41d4-a716-446655440001"
	for interval := range 4 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		p := newPublisher(r, origin)
		for i, value := range []string{popular, popular, once} {
			want := value
			if _, name := floodOfUsers(rnd); interval > 0 && value == once {
				want = name
			}
			if got := shownAs(r, p.admit(keyOf(span.LabelResource, value)), span.LabelResource); got != want {
				t.Errorf("interval %d: value %d became %s", interval, i, got)
			}
		}
		for range 1000 {
			value, _ := floodOfUsers(rnd)
			p.admit(keyOf(span.LabelResource, value))
		}
		p.lookup.Report()
		intervals.Begin()
	}
}

// TestAFoldedFloodCostsNoLockAndNoMemory: once its name has a row, a lookup is enough.
func TestAFoldedFloodCostsNoLockAndNoMemory(t *testing.T) {
	intervals, rnd := folding(span.LabelResource, 64)
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	p := newPublisher(r, origin)
	keys := make([]*span.Key, 2000)
	for i := range keys {
		value, _ := floodOfUsers(rnd)
		keys[i] = keyOf(span.LabelResource, value)
	}
	for _, key := range keys[:1000] {
		p.admit(key)
		p.lookup.Report()
	}
	next := 1000
	allocations := testing.AllocsPerRun(900, func() {
		if a, ok := p.lookup.Admit(keys[next], 0, false); !ok || !a.Folded.Has(span.LabelResource) {
			t.Fatalf("%s is %+v, known: %t", keys[next].Resource, a, ok)
		}
		next++
	})
	if allocations != 0 {
		t.Errorf("a key costs %v allocations", allocations)
	}
}

// TestAFolderKeepsNoMessage: once its keys are reported, a message may be collected that a
// value was a part of.
func TestAFolderKeepsNoMessage(t *testing.T) {
	intervals, rnd := folding(span.LabelResource, 1)
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	p := newPublisher(r, origin)
	var messages []weak.Pointer[byte]
	for range 100 {
		value, _ := floodOfUsers(rnd)
		message := []byte(value)
		messages = append(messages, weak.Make(unsafe.SliceData(message)))
		p.admit(keyOf(span.LabelResource, unsafe.String(unsafe.SliceData(message), len(message))))
		p.lookup.Report()
	}
	p.last = span.Key{}
	runtime.GC()
	kept := 0
	for _, message := range messages {
		if message.Value() != nil {
			kept++
		}
	}
	if kept > 0 {
		t.Errorf("%d messages are kept", kept)
	}
	runtime.KeepAlive(p)
}

// TestAFloodThatTeachesNothingIsLookedAtRarely, but still often enough for a template to be
// learnt within the interval.
func TestAFloodThatTeachesNothingIsLookedAtRarely(t *testing.T) {
	intervals, rnd := folding(span.LabelResource, 1)
	word := func() (text string) {
		for range 8 {
			text += string(rune('a' + rnd.IntN(26)))
		}
		return text
	}
	sights := func(p *publisher, value func() string) int {
		for range 64 {
			p.admit(keyOf(span.LabelResource, value()))
		}
		defer p.lookup.Report()
		return len(p.lookup.folder.sights)
	}
	p := &publisher{}
	for range 2 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		p.begin(r, origin)
		p.admit(keyOf(span.LabelResource, "GET /honest"))
		for batch := range manyLooks/mostLooks + 20 {
			want := mostLooks
			if batch >= manyLooks/mostLooks {
				want = fewLooks
			}
			if got := sights(p, func() string { return "GET /" + word() + "/1234567" }); got != want {
				t.Fatalf("of batch %d %d sights are kept", batch, got)
			}
		}
		intervals.Begin()
		intervals.Begin()
	}
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	p.begin(r, origin)
	p.lookup.folder.looked = manyLooks
	p.admit(keyOf(span.LabelResource, "GET /honest"))
	for range 12 {
		sights(p, func() string { value, _ := floodOfUsers(rnd); return value })
	}
	value, name := floodOfUsers(rnd)
	if got := shownAs(r, p.admit(keyOf(span.LabelResource, value)), span.LabelResource); got != span.Blocked && got != name {
		t.Errorf("%s became %s", value, got)
	}
	if intervals.Folding().Templates["resource"] != 1 {
		t.Error("nothing was learnt")
	}
}

// TestWordsAreLookedAtAsRarely: a value that can teach nothing has been looked at too.
func TestWordsAreLookedAtAsRarely(t *testing.T) {
	intervals, _ := folding(span.LabelResource, 1)
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	p := newPublisher(r, origin)
	p.admit(keyOf(span.LabelResource, "GET /honest"))
	for i := range 64 {
		p.admit(keyOf(span.LabelResource, "GET /"+string(rune('a'+i%26))))
		if isFull := p.lookup.folder.isFull(); isFull != (i >= mostLooks) {
			t.Fatalf("after %d words no more are looked at: %t", i+1, isFull)
		}
	}
}

// TestARetryTeachesNothing: what is tried again does not come again.
func TestARetryTeachesNothing(t *testing.T) {
	intervals, rnd := folding(span.LabelResource, 1)
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	p := newPublisher(r, origin)
	p.admit(keyOf(span.LabelResource, "GET /honest"))
	p.isRetry = true
	for range 1000 {
		value, _ := floodOfUsers(rnd)
		p.admit(keyOf(span.LabelResource, value))
		p.lookup.Report()
	}
	if folding := intervals.Folding(); folding.Templates["resource"] != 0 || folding.Keys["resource"] != 0 {
		t.Errorf("of retries alone there are %+v", folding)
	}
}

// TestATemplateIsForgotten: it is known for two intervals without a value that it explains.
func TestATemplateIsForgotten(t *testing.T) {
	intervals, rnd := folding(span.LabelResource, 64)
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	for range 500 {
		value, _ := floodOfUsers(rnd)
		r.Admit(origin, keyOf(span.LabelResource, value), false)
	}
	for interval, want := range []int{1, 1, 1, 0} {
		if got := intervals.Folding().Templates["resource"]; got != want {
			t.Errorf("after %d intervals %d templates are known", interval, got)
		}
		intervals.Begin()
	}
}
