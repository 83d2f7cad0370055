package ring

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// scenario is a kind of concurrent execution.
type scenario struct {
	name      string
	slots     int
	longest   int // slots of the longest run
	limit     int // slots per turn
	producers int
	claims    int // claims per producer
	skips     bool
}

var scenarios = []scenario{
	{"one run per turn", 4, 3, 1, 3, 8, false},
	{"singles", 2, 1, 1, 3, 8, false},
	{"full ring", 8, 8, 8, 2, 10, false},
	{"merged turns", 8, 3, 8, 3, 7, false},
	{"skips", 4, 2, 4, 2, 8, true},
}

// histories is the number of recorded histories per scenario.
const histories = 300

// play runs producers and a consumer concurrently and returns their history.
func play(t *testing.T, s scenario, seed uint64) *history {
	t.Helper()
	r, err := ring.New[slot](s.slots)
	if err != nil {
		t.Fatal(err)
	}
	h := &history{}
	var producing sync.WaitGroup
	for p := range s.producers {
		producing.Go(func() { produce(r, h, s, p, rand.New(rand.NewPCG(seed, uint64(p)))) })
	}
	go func() {
		producing.Wait()
		r.Send(ring.Signal{Kind: ring.Stop})
	}()
	consumer := &recorder{history: h, client: 2 * s.producers, single: s.limit == 1}
	dice := rand.New(rand.NewPCG(seed, 1<<32))
	r.Consume(s.limit, func(slots []slot) {
		consumer.slots(slots)
		for range dice.IntN(4) {
			runtime.Gosched()
		}
	}, consumer.signal)
	if len(consumer.broken) > 0 {
		t.Fatalf("slots that do not continue their run: %v", consumer.broken)
	}
	return h
}

// produce makes claims, some of which are refused, and sometimes sends a report.
func produce(r *ring.Ring[slot], h *history, s scenario, p int, dice *rand.Rand) {
	for i := range s.claims {
		id := uint32(p<<16 | i)
		n := 1 + dice.IntN(s.longest)
		from := h.tick()
		c, result := r.Claim(n)
		if result == ring.Contended {
			continue
		}
		h.add(p, operation{act: claim, id: id, n: n}, result, from, h.tick())
		if result == ring.Full {
			runtime.Gosched()
			continue
		}
		for k := range n {
			*c.Slot(k) = slot{id, uint32(k), uint32(n)}
		}
		end(h, s, p, &c, id, dice)
		if dice.IntN(4) == 0 {
			from := h.tick()
			if r.Send(ring.Signal{Kind: ring.Report, Arg: uint64(id)}) {
				h.add(p, operation{act: send, id: id}, 0, from, h.tick())
			}
		}
	}
}

// end publishes or skips a claim.
func end(h *history, s scenario, p int, c *ring.Claim[slot], id uint32, dice *rand.Rand) {
	if dice.IntN(2) == 0 {
		runtime.Gosched()
	}
	from := h.tick()
	if s.skips && dice.IntN(3) == 0 {
		c.Skip()
		h.add(p, operation{act: skip, id: id}, 0, from, h.tick())
		h.skipFree(s.producers+p, id, from)
		return
	}
	c.Publish()
	h.add(p, operation{act: publish, id: id}, 0, from, h.tick())
}

func TestHistories_AreLinearizable(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			var full, operations int
			for seed := range uint64(histories) {
				h := play(t, s, seed)
				model := modelOf(s.slots)
				result, info := porcupine.CheckOperationsVerbose(model, h.operations, 20*time.Second)
				if result != porcupine.Ok {
					t.Fatalf("seed %d: %s\n%s", seed, result, describe(h, info))
				}
				operations += len(h.operations)
				for _, o := range h.operations {
					if o.Output == ring.Full {
						full++
					}
				}
			}
			t.Logf("%d operations, %d claims refused", operations, full)
		})
	}
}

// describe lists a history that is not linearizable.
func describe(h *history, info porcupine.LinearizationInfo) string {
	text := fmt.Sprintf("longest explained: %v\n", info.PartialLinearizations())
	for i, o := range h.operations {
		text += fmt.Sprintf("%3d client %d [%d, %d] %+v: %v\n", i, o.ClientId, o.Call, o.Return, o.Input,
			o.Output)
	}
	return text
}
