package aggregate

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestGuard_ChecksCycleAgain: the sealer may move on between a publisher's
// look at the current cycle and its showing that it is inside. Then it must not stay, for
// the sealer need not have seen it.
func TestGuard_ChecksCycleAgain(t *testing.T) {
	a, err := New(testConfig(func(s *Sealed) { s.Delivery.Resolve(nil); s.Release() }))
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	defer a.Stop()
	g := a.NewGuard()
	defer g.Close()
	looked := a.cycles.current.Load()
	a.Seal()
	if g.tryEnter(looked) || g.entered.Load() != noCycle {
		t.Error("a guard is inside a cycle that is sealed already")
	}
	if c := g.Enter(); c == nil || c.Number() == looked {
		t.Errorf("it entered %v", c)
	}
	g.Exit()
}

// TestCycle_ReadyBeforeEntered has a publisher enter cycles while new cycles begin. The publisher must get the current
// cycle, or a later one. If it got a cycle that is still being initialized, the race detector would report it.
func TestCycle_ReadyBeforeEntered(t *testing.T) {
	a, err := New(testConfig(func(s *Sealed) { s.Delivery.Resolve(nil); s.Release() }))
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	var entering sync.WaitGroup
	entering.Go(func() {
		g := a.NewGuard()
		defer g.Close()
		for !ended.Load() {
			current := a.cycles.current.Load()
			if c := g.Enter(); c.Number() < current || c.Window().mainPlace.cycle != uint8(c.Number()&1) {
				t.Errorf("entered cycle %d when %d was current", c.Number(), current)
			}
			g.Exit()
		}
	})
	for range 500 { // what the sealer does, without its pauses
		number, _ := a.nextCycle(false)
		a.cycles.awaitExits(number)
		a.cycles.byNumber(number).release()
	}
	ended.Store(true)
	entering.Wait()
}
