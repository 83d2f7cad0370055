package aggregate

import (
	"testing"
	"time"
)

// TestAGuardLooksAgainOnceItHasShownItsCycle: the sealer may move on between a publisher's
// look at the current cycle and its showing that it is inside. Then it must not stay, for
// the sealer need not have seen it.
func TestAGuardLooksAgainOnceItHasShownItsCycle(t *testing.T) {
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
	if g.enter(looked) || g.inside.Load() != 0 {
		t.Error("a guard is inside a cycle that is sealed already")
	}
	if c := g.Enter(); c == nil || c.Number() == looked {
		t.Errorf("it entered %v", c)
	}
	g.Exit()
}

// TestASealWaitsForWhoIsInside: a cycle is not sealed before the last guard has left it.
func TestASealWaitsForWhoIsInside(t *testing.T) {
	sealed := make(chan uint64, 100)
	a, err := New(testConfig(func(s *Sealed) { sealed <- s.Cycle; s.Delivery.Resolve(nil); s.Release() }))
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	g := a.NewGuard()
	inside := g.Enter().Number()
	done := make(chan struct{})
	go func() { defer close(done); a.Seal() }()
	for a.cycles.current.Load() == inside {
		time.Sleep(time.Millisecond)
	}
	select {
	case cycle := <-sealed:
		t.Errorf("cycle %d was sealed with a guard inside", cycle)
	case <-time.After(20 * time.Millisecond):
	}
	g.Exit()
	<-done
	if cycle := <-sealed; cycle != inside {
		t.Errorf("cycle %d was sealed first, want %d", cycle, inside)
	}
	g.Close()
	a.Stop()
}
