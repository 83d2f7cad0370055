package aggregate

import "testing"

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
