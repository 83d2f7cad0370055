package aggregate

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// closedCycle is the current cycle's number once there is no further one.
const closedCycle = ^uint64(0)

// cycles publishes which cycle is current, and knows who is inside one. The package
// comment says why that makes a boundary exact.
type cycles struct {
	current atomic.Uint64
	_       cpu.CacheLinePad
	memory  [2]*Cycle // cycle n is memory[n%2]

	waiting atomic.Bool   // the sealer waits for guards to exit
	exited  chan struct{} // a token when one may have

	mu     sync.Mutex
	guards map[*Guard]struct{}
}

func (c *cycles) at(number uint64) *Cycle { return c.memory[number%2] }

// Guard keeps the cycle that its publisher is inside from being sealed: it is the
// publisher's epoch guard. A connection has one and uses it from its own goroutine.
type Guard struct {
	_      cpu.CacheLinePad
	inside atomic.Uint64 // number of the cycle plus one, 0 when outside
	_      cpu.CacheLinePad
	cycles *cycles
}

func (c *cycles) newGuard() *Guard {
	g := &Guard{cycles: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guards[g] = struct{}{}
	return g
}

// Close ends the guard's use. It must be outside.
func (g *Guard) Close() {
	g.cycles.mu.Lock()
	defer g.cycles.mu.Unlock()
	delete(g.cycles.guards, g)
}

// Enter returns the current cycle, which is not sealed before Exit. It returns
// nil when the last cycle has been sealed: nothing can be published any more.
func (g *Guard) Enter() *Cycle {
	for {
		number := g.cycles.current.Load()
		if number == closedCycle {
			return nil
		}
		if g.enter(number) {
			return g.cycles.at(number)
		}
	}
}

// enter shows the cycle as entered, and then looks again whether it is current. If not,
// the sealer may not have seen the guard, or may be waiting for it.
func (g *Guard) enter(number uint64) bool {
	g.inside.Store(number + 1)
	if g.cycles.current.Load() == number {
		return true
	}
	g.Exit()
	return false
}

// Exit says that everything of the entered cycle has been published.
func (g *Guard) Exit() {
	g.inside.Store(0)
	if g.cycles.waiting.Load() {
		select {
		case g.cycles.exited <- struct{}{}:
		default: // a token is there already; the sealer will look again
		}
	}
}

// awaitExits returns when no guard is inside the cycle any more. The caller has made
// another cycle current, so none can enter it again.
func (c *cycles) awaitExits(number uint64) {
	c.waiting.Store(true)
	defer c.waiting.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.guards {
		for g.inside.Load() == number+1 {
			<-c.exited
		}
	}
}
