package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is the ring as a list of claimed runs, in order, with their states.
type model struct {
	size int
	runs []modelRun // claimed, not freed yet
}

type modelRun struct {
	values []uint64
	state  int // 0 claimed, 1 published, 2 skipped
}

func (m *model) used() (n int) {
	for _, run := range m.runs {
		n += len(run.values)
	}
	return n
}

// take returns the slots that one turn of at most limit slots consumes, and frees them. A skipped run takes a
// turn of its own.
func (m *model) take(limit int) (values []uint64) {
	if len(m.runs) > 0 && m.runs[0].state == 2 {
		m.runs = m.runs[1:]
		return nil
	}
	for len(m.runs) > 0 && m.runs[0].state == 1 {
		run := m.runs[0]
		if len(values) > 0 && len(values)+len(run.values) > limit {
			break
		}
		values = append(values, run.values...)
		m.runs = m.runs[1:]
	}
	return values
}

// script claims runs of mixed sizes, fills them, publishes them out of order, skips some and
// consumes with limits, on a ring and on the model.
func script(t *testing.T, slots int, steps func() (byte, bool)) {
	r, err := New[[2]uint64](slots)
	if err != nil {
		t.Fatal(err)
	}
	type open struct {
		claim Claim[[2]uint64]
		run   int // number of runs that the model has freed, plus the index in its list
	}
	m, freed, next, at := model{size: slots}, 0, uint64(0), r.head.Load()
	var claims []open
	for {
		step, more := steps()
		if !more {
			return
		}
		switch {
		case step < 100:
			n := 1 + int(step)%(slots+slots/2+1)
			c, result := r.Claim(n)
			if want := m.used()+n <= slots; (result == Claimed) != want || !want && result != Full {
				t.Fatalf("a claim of %d with %d of %d in use is %d", n, m.used(), slots, result)
			}
			if result != Claimed {
				continue
			}
			run := modelRun{}
			a, b := c.Segments()
			if len(a)+len(b) != n || c.Len() != n {
				t.Fatalf("a run of %d has %d and %d slots", n, len(a), len(b))
			}
			for i := range n {
				next++
				*c.Slot(i) = [2]uint64{next, ^next}
				run.values = append(run.values, next)
			}
			claims = append(claims, open{c, freed + len(m.runs)})
			m.runs = append(m.runs, run)
		case step < 200 && len(claims) > 0:
			i := int(step) % len(claims)
			c := claims[i]
			claims = slices.Delete(claims, i, i+1)
			if step%3 == 0 {
				c.claim.Skip()
				m.runs[c.run-freed].state = 2
			} else {
				c.claim.Publish()
				m.runs[c.run-freed].state = 1
			}
		case step >= 200:
			limit := 1 + int(step-200)
			var got []uint64
			at = r.consumePublished(at, uint64(limit), func(slots [][2]uint64) {
				for _, s := range slots {
					if s[1] != ^s[0] {
						t.Fatalf("a torn slot: %x", s)
					}
					got = append(got, s[0])
				}
			})
			before := len(m.runs)
			if want := m.take(limit); !slices.Equal(got, want) {
				t.Fatalf("a turn of %d gave %v, want %v", limit, got, want)
			}
			freed += before - len(m.runs)
		}
		if used := r.Stats().Used; used != m.used() {
			t.Fatalf("%d slots in use, want %d", used, m.used())
		}
	}
}

// TestRing_AgainstModel runs random scripts on rings of every small size.
func TestRing_AgainstModel(t *testing.T) {
	for _, slots := range []int{1, 2, 4, 8, 64} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			for seed := range uint64(60) {
				rnd, left := rand.New(rand.NewPCG(seed, uint64(slots))), 2000
				script(t, slots, func() (byte, bool) {
					left--
					return byte(rnd.Uint32()), left > 0
				})
			}
		})
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add(byte(2), []byte{3, 101, 210, 5, 5, 103, 102, 255})
	f.Add(byte(0), []byte{0, 0, 100, 200, 0, 101, 200})
	f.Fuzz(func(t *testing.T, size byte, steps []byte) {
		script(t, 1<<(size%7), func() (byte, bool) {
			if len(steps) == 0 {
				return 0, false
			}
			step := steps[0]
			steps = steps[1:]
			return step, true
		})
	})
}

func TestBugs_Panic(t *testing.T) {
	r, err := New[uint64](8)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := r.Claim(2)
	for name, bug := range map[string]func(){
		"a claim of nothing":    func() { r.Claim(0) },
		"a slot beyond the run": func() { c.Slot(2) },
		"a turn without room":   func() { r.Consume(0, func([]uint64) {}, func(Signal) {}) },
		"a second end":          func() { d, _ := r.Claim(1); d.Publish(); d.Publish() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s went through", name)
				}
			}()
			bug()
		}()
	}
}

func TestNew_Refuses(t *testing.T) {
	if _, err := New[struct {
		_ int
		_ [2]struct{ _ string }
	}](8); err == nil {
		t.Error("a slot with a string was accepted")
	}
	if _, err := New[struct{}](8); err == nil {
		t.Error("a slot without a size was accepted")
	}
	for _, slots := range []int{-8, 0, 3, 1000, maxSlots * 2} {
		if _, err := New[uint64](slots); err == nil {
			t.Errorf("a ring of %d slots was made", slots)
		}
	}
}
