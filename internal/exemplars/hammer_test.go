package exemplars_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
)

// guarded stands for the cycles of package aggregate: who is inside one holds the lock to
// read, the sealer takes it whole to begin the next, and begins that only when the flush has
// released the one before the last. What orders their memory is that and nothing else.
type guarded struct {
	sync.RWMutex
	cycle uint64
}

// labelled tells keys and outcomes apart.
func labelled(key uint32, isError bool) uint64 {
	if isError {
		return uint64(key) | 1<<32
	}
	return uint64(key)
}

// TestTracersAndTheFlush hammers a table as the daemon does. Run with -race it shows that
// what is sealed can be read without the lock; and each exemplar must be of the series that it
// is found under, of a body that was taken.
func TestTracersAndTheFlush(t *testing.T) {
	const tracers, keys, cycles = 4, 16, 300
	table, open := exemplars.New(24), guarded{}
	var running sync.WaitGroup
	stop := make(chan struct{})
	for tracer := range uint64(tracers) {
		running.Go(func() {
			rnd := rand.New(rand.NewPCG(tracer, 9))
			var waiting [5]exemplars.Candidates
			for number := uint64(0); ; number++ {
				select {
				case <-stop:
					return
				default:
				}
				at := number % uint64(len(waiting))
				table.Resolve(waiting[at], (number-uint64(len(waiting)))%2 == 0)
				open.RLock()
				waiting[at] = table.Choose(func(b *exemplars.Body) {
					for range 8 {
						key, isError, ns := uint32(rnd.IntN(keys)), rnd.IntN(2) == 0, rnd.Uint64N(1000)
						if e := b.Propose(open.cycle, key, isError, ns); e != nil {
							*e = exemplars.Exemplar{
								TraceHigh: open.cycle, TraceLow: labelled(key, isError),
								Span: number + 1, Duration: ns, End: int64(ns),
							}
						}
					}
				})
				open.RUnlock()
			}
		})
	}
	found := 0
	for done := 0; done < cycles || found < cycles; done++ {
		open.Lock()
		number := open.cycle
		open.cycle++
		open.Unlock()
		sealed := table.Seal(number)
		for key := range uint32(keys) {
			for _, isError := range []bool{false, true} {
				e := sealed.Of(key, isError)
				if e.Span == 0 {
					continue
				}
				found++
				if e.TraceHigh != number || e.TraceLow != labelled(key, isError) ||
					e.Duration != uint64(e.End) || e.Span%2 == 0 {
					t.Errorf("key %d of cycle %d has %+v", key, number, e)
				}
			}
		}
		runtime.Gosched()
	}
	close(stop)
	running.Wait()
}
