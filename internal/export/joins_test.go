package export

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// latecomer is an auto-discovered destination, until it has joined.
type latecomer struct {
	*scripted
	joined atomic.Bool
}

func (l *latecomer) describe() Exporter {
	x := l.scripted.describe()
	x.Discovered = l.joined.Load
	return x
}

// An auto-discovered destination gets all cycles sealed after it was found, whenever that is. Spans
// sealed earlier are counted separately. They delay no client, and do not count as lost.
func TestJoin_LateDestinationGetsLaterCycles(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 1))
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			late := &latecomer{scripted: &scripted{name: "late"}}
			exporters := []describer{late}
			if random.IntN(2) == 0 {
				exporters = []describer{&scripted{name: "good"}, late}
			}
			f := startSeveral(t, Config{}, exporters...)
			all := f.Destinations()
			joins, cycles := random.IntN(12), 10     // it can be never found
			var before, after, cleared, spans uint64 // without discarded snapshots
			for i := range cycles {
				if i == joins {
					late.joined.Store(true)
				}
				if random.IntN(3) == 0 {
					late.answers(down)
				} else {
					late.answers(nil)
				}
				sealed := testcycle.Spans(random.IntN(5))
				sealed.Cleared = uint64(random.IntN(3))
				delivery := sealed.Delivery
				spans += sealed.Spans()
				if i < joins {
					before += sealed.Spans() + sealed.Cleared
				} else {
					after, cleared = after+sealed.Spans(), cleared+sealed.Cleared
				}
				f.Accept(sealed)
				synctest.Wait()
				for _, d := range all {
					balanced(t, d, before+after+cleared)
				}
				if _, resolved := resolution(delivery); i < joins && !resolved {
					t.Fatal("a cycle is not delivered while a destination is being discovered")
				}
			}
			if s := all[len(all)-1].Stats(); (s.State() == StateDiscovering) != (joins >= cycles) {
				t.Errorf("joined before cycle %d of %d, and is %s", joins, cycles, s.State())
			}
			late.answers(nil)
			time.Sleep(time.Minute)
			f.Close(t.Context())
			for _, d := range all {
				s := balanced(t, d, before+after+cleared)
				want := [...]uint64{after, before, cleared}
				if d.Name() == "good" {
					want = [...]uint64{spans, 0, before + after + cleared - spans}
				}
				if got := [...]uint64{s.Flushed, s.BeforeDiscovery, s.Unsent[NotWanted]}; got != want ||
					s.Pending != 0 {
					t.Errorf("%s: flushed, before, cleared are %d, want %d; %+v", d.Name(), got, want, s)
				}
			}
		})
	}
}

func TestBusiest_BeforeAnyDestination(t *testing.T) {
	f := startSeveral(t, Config{}, &latecomer{scripted: &scripted{}})
	var sealed *aggregate.Sealed
	for _, spans := range []int{3, 0} { // a cycle without spans changes nothing
		sealed = testcycle.Spans(spans)
		f.Accept(sealed)
	}
	if b := f.Busiest(); b.Spans != 3 || sealed.Keys != nil {
		t.Errorf("the busiest are of %d spans, and the cycle's memory is kept: %t", b.Spans,
			sealed.Keys != nil)
	}
}
