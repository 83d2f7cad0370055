package traces

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// TestBody_MalformedIsLeftToAgent flips, removes and repeats bytes of bodies. The counter must not
// accept a body that the agent would refuse, and must count the accepted ones like the agent.
func TestBody_MalformedIsLeftToAgent(t *testing.T) {
	o := makeOracle()
	policy := agentPolicy(t, o.conf)
	for format, write := range formats {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(11, uint64(format)))
			c := dd.NewCounter()
			now := time.Now()
			since := now.Add(-2 * time.Hour)
			accepted, uncounted := 0, 0
			for i := range 6_000 {
				body := write(randomPayload(rnd, now), rnd)
				for range 1 + rnd.IntN(3) {
					body = broken(rnd, body)
				}
				if c.Count(format, body, "go", false, policy) != nil {
					uncounted++
					continue
				}
				accepted++
				expected, refused := o.count(t, format, slices.Clone(body), "go", false, since)
				if refused != nil {
					t.Fatalf("case %d: counted, but the agent rejects it: %v\n%q", i, refused, body)
				}
				if actual := ours(t, c.Batches, "go", since); !maps.Equal(actual, expected) &&
					!ambiguous(actual, expected) {
					t.Fatalf("case %d:\n ours %v\nagent %v\n%q", i, actual, expected, body)
				}
			}
			t.Logf("%d accepted, %d left to the agent", accepted, uncounted)
			if accepted < 500 || uncounted < 500 {
				t.Errorf("%d accepted and %d uncounted: the comparison has little coverage", accepted, uncounted)
			}
		})
	}
}

// ambiguous reports whether two counts can differ because a trace has several roots after losing spans,
// of which the agent takes any. The number of spans must be equal then, and only the facts defined by
// the root can differ.
func ambiguous(a, b map[string]total) bool {
	sum := func(m map[string]total) (spans float64) {
		for _, count := range m {
			spans += count.fine + count.failed
		}
		return spans
	}
	return sum(a) == sum(b)
}

func broken(rnd *rand.Rand, body []byte) []byte {
	if len(body) == 0 {
		return body
	}
	at := rnd.IntN(len(body))
	switch rnd.IntN(5) {
	case 0:
		return body[:at]
	case 1:
		body[at] = byte(rnd.IntN(256))
	case 2:
		body[at] ^= 1 << rnd.IntN(8)
	case 3:
		return slices.Insert(body, at, byte(rnd.IntN(256)))
	default:
		return slices.Delete(body, at, at+1)
	}
	return body
}

// TestBody_TagsAreBoundedLikeAgent counts a span that has as many tags as the agent accepts, and one that
// has one more, which both sides must reject.
func TestBody_TagsAreBoundedLikeAgent(t *testing.T) {
	o := makeOracle()
	policy := agentPolicy(t, o.conf)
	for format, write := range formats {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(13, uint64(format)))
			c := dd.NewCounter()
			now := time.Now()
			since := now.Add(-2 * time.Hour)
			most := msgpack.MaxElements
			if format == datadog.FormatV1 {
				most /= 3 // a name, a type and a value are three elements of one array
			}
			for _, tags := range []int{most, most + 1} {
				s := &fakeSpan{
					service: "shop", name: "web.request", resource: "GET /", typ: "web", id: 1,
					start: now.Add(-time.Hour).UnixNano(), duration: 1e6,
					meta: slices.Repeat([][2]string{{"a", "b"}}, tags),
				}
				body := write(&fakePayload{traces: [][]*fakeSpan{{s}}, origins: []string{""}}, rnd)
				err := c.Count(format, body, "go", false, policy)
				expected, refused := o.count(t, format, slices.Clone(body), "go", false, since)
				if isTooMany := tags > most; (refused != nil) != isTooMany || (err != nil) != isTooMany {
					t.Fatalf("%d tags: the error is %v, and that of the agent %v", tags, err, refused)
				}
				if err != nil {
					continue
				}
				if actual := ours(t, c.Batches, "go", since); len(actual) == 0 || !maps.Equal(actual, expected) {
					t.Errorf("%d tags:\n ours %v\nagent %v", tags, actual, expected)
				}
			}
		})
	}
}
