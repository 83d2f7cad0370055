package admit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestRecurringNames_HaveTheirRows: a name that occurs twice in every interval gets all of its
// spans from the fourth interval on, during a high-cardinality burst and after a pause too. The
// registry has more such tests; this one goes through a publisher.
func TestRecurringNames_HaveTheirRows(t *testing.T) {
	const names, pause = 600, 3
	name := func(i int) string { return fmt.Sprint("GET /legit/route-", i) }
	for shape, flood := range map[string]func(*rand.Rand) string{
		"none": nil,
		"words": func(r *rand.Rand) string {
			return fmt.Sprintf("GET /%c%c%c%c%c%c", letter(r), letter(r), letter(r), letter(r), letter(r),
				letter(r))
		},
		"numbers": func(r *rand.Rand) string { return fmt.Sprint("GET /users/", r.Uint64()) },
		"alike":   func(r *rand.Rand) string { return fmt.Sprint("GET /legit/route-", 1000+r.Uint64()>>1) },
	} {
		t.Run(shape, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, nil)
				h.aggregator.Start()
				p, rnd := h.NewConnection(span.Origin{Service: "web"}, 0), rand.New(rand.NewPCG(1, 2))
				for interval := range 11 {
					clear(h.rows)
					come := names
					if interval >= 4 && interval < 4+pause {
						come = 1
					}
					var sent []string
					for i := range come {
						sent = append(sent, name(i), name(i))
					}
					for range 2000 {
						if flood != nil {
							sent = append(sent, flood(rnd))
						}
					}
					rnd.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
					for batch := range slices.Chunk(sent, 100) {
						if err := p.Publish(bodyOf(len(batch), func(i int, frame []byte) []byte {
							return wire.AppendWhole(frame, key(batch[i]), 1000, time.Now().UnixNano(), 0, 1)
						})); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
					}
					time.Sleep(aggregate.DefaultConfig().FlushInterval)
					synctest.Wait()
					since := interval
					if interval >= 4+pause {
						since -= 4 + pause
					}
					for i := range come {
						if spans := h.rows[name(i)]; since >= 3 && spans != 2 {
							t.Fatalf("interval %d: %d spans of 2 are under %s", interval, spans, name(i))
						}
					}
				}
				h.stop(p)
			})
		})
	}
}

func letter(r *rand.Rand) rune { return rune('a' + r.IntN(26)) }
