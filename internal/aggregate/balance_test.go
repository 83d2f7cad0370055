package aggregate

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestBalancer_SaturatedDrainersUnderSkew expects that the balancer works although every ring is full and no
// drainer runs, because it never waits for drainers. The slots in the rings are counted afterwards.
func TestBalancer_SaturatedDrainersUnderSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans uint64
		config := testConfig(func(s *Sealed) {
			spans += s.Spans()
			s.Delivery.Resolve(nil)
			s.Release()
		})
		config.Drainers = 2
		a, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		a.balancer.Start()
		guard, route := a.NewGuard(), a.NewRoute()
		cycle := guard.Enter()
		origin, _ := cycle.AdmitOrigin(span.Origin{})
		var keys []registry.Admission
		for i := range 50 {
			keys = append(keys, cycle.Admit(origin, &span.Key{Resource: fmt.Sprint(i)}))
		}
		published := uint64(0)
		offer := func() (admitted int) {
			for i := range 200_000 {
				key := keys[i%len(keys)*(i%5/3)] // three in five have the first key
				route.Begin()
				claim, result := a.Ring(route.Drainer(key.Hash)).Claim(1)
				route.CountLoad([]uint32{key.Hash})
				if result == ring.Claimed {
					window := cycle.Window()
					*claim.Slot(0) = Slot{Key: key.ID, Weight: 1, Place: window.Place(time.Now().UnixNano())}
					claim.Publish()
					admitted++
				}
			}
			published += uint64(admitted)
			return admitted
		}
		offer()
		for d := range a.Drainers() {
			if s := a.Ring(d).Stats(); s.Used != s.Slots {
				t.Fatalf("ring %d has room: %+v", d, s)
			}
		}
		for range 3 {
			if offer() != 0 {
				t.Fatal("a full ring took something")
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		s := a.Stats().Partitions
		hot := int(keys[0].Hash & uint32(a.balancer.Routing().Partitions()-1))
		if s.LoadRatio > 1.15 || len(a.balancer.Routing().Owners(hot)) < 2 || s.LastPlan.Why != "balanced" {
			t.Errorf("not levelled while the drainers stood still: %+v", s)
		}
		guard.Exit()
		guard.Close()
		for _, d := range a.drainers {
			go d.run()
		}
		go a.sealer.run()
		a.Stop()
		if spans != published || published != uint64(2*config.RingSlots) {
			t.Errorf("%d published, %d counted", published, spans)
		}
	})
}

// TestGoroutines_AreConstant checks that there are one goroutine per drainer, one sealer and one balancer, regardless of the
// number of spans and of moved partitions.
func TestGoroutines_AreConstant(t *testing.T) {
	config := testConfig(func(s *Sealed) { s.Delivery.Resolve(nil); s.Release() })
	config.Drainers, config.RebalanceInterval = 3, routing.MinInterval
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	r := a.NewGuard()
	for i := range 20_000 {
		publish(a, r, span.Origin{}, span.Key{Resource: fmt.Sprint(i % 500)},
			Slot{End: time.Now().UnixNano(), Weight: 1})
		if i%1000 == 0 && started() != config.Drainers+2 {
			t.Fatalf("%d goroutines for %d drainers", started(), config.Drainers)
		}
	}
	r.Close()
	a.Stop()
}

// started counts the goroutines that this package started and that still run.
func started() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks),
		"created by github.com/spanstatsd/spanstatsd/internal/aggregate.(*") +
		strings.Count(string(stacks), "created by github.com/spanstatsd/spanstatsd/internal/routing.(*")
}
