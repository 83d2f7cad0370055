package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// shape is a kind of span: its key, the resulting series in the dialect spanmetrics, and its durations.
type shape struct {
	key        client.Key
	name, kind string
	isError    bool
	from       time.Duration
	octaves    float64
}

// shapes are the spans of each origin of a load: durations in few octaves, which keep the finest scale,
// and in many octaves, which do not; errors with the same key; and several span kinds.
var shapes = []shape{
	{cart, "GET /cart", "SPAN_KIND_SERVER", false, 2 * time.Millisecond, 4},
	{cart, "GET /cart", "SPAN_KIND_SERVER", true, time.Millisecond, 7},
	{orders, "POST /orders", "SPAN_KIND_SERVER", false, 100 * time.Microsecond, 14},
	{query, "sql.query", "SPAN_KIND_CLIENT", false, 50 * time.Microsecond, 3},
}

var (
	cart = client.Key{
		Operation: "http.request", Resource: "GET /cart", Type: "web", Kind: "server",
		HTTPMethod: "GET", HTTPEndpoint: "/cart",
	}
	orders = client.Key{
		Operation: "http.request", Resource: "POST /orders", Type: "web", Kind: "server",
		HTTPMethod: "POST", HTTPEndpoint: "/orders",
	}
	query = client.Key{Operation: "sql.query", Resource: "SELECT carts", Type: "sql", Kind: "client"}
)

func (s *shape) status() string {
	if s.isError {
		return "STATUS_CODE_ERROR"
	}
	return "STATUS_CODE_UNSET"
}

// loadedSpan is a span of a load, with its origin.
type loadedSpan struct {
	origin   int
	shape    *shape
	duration time.Duration
}

// source accepts spans and delivers the resulting metrics.
type source interface {
	origins() int
	publish(spans []loadedSpan) error
	name(span *loadedSpan) string // name of the Prometheus series that counts span
}

// load publishes spans of all origins of several sources until it is stopped, and counts each span in
// the oracle.
type load struct {
	oracle    *oracle
	published uint64
	end       chan struct{}
	ended     sync.WaitGroup
	err       error
}

// pause is the time between rounds. In each round, each origin publishes a span of each shape.
const pause = 100 * time.Millisecond

func startLoad(t *testing.T, sources ...source) *load {
	l := &load{oracle: newOracle(t), end: make(chan struct{})}
	r := rand.New(rand.NewPCG(22, 1))
	l.ended.Go(func() {
		for l.err == nil {
			for _, s := range sources {
				l.round(t, r, s)
			}
			select {
			case <-l.end:
				return
			case <-time.After(pause):
			}
		}
	})
	t.Cleanup(func() { l.stop(t) })
	return l
}

func (l *load) round(t *testing.T, r *rand.Rand, to source) {
	spans := make([]loadedSpan, 0, to.origins()*len(shapes))
	for origin := range to.origins() {
		for i := range shapes {
			spans = append(spans, loadedSpan{origin, &shapes[i], shapes[i].duration(r)})
		}
	}
	if err := to.publish(spans); err != nil {
		l.err = fmt.Errorf("publish spans: %w", err)
		return
	}
	for i := range spans {
		l.oracle.count(t, to.name(&spans[i]), spans[i].duration)
	}
	l.published += uint64(len(spans))
}

func (s *shape) duration(r *rand.Rand) time.Duration {
	return time.Duration(float64(s.from) * math.Exp2(r.Float64()*s.octaves))
}

// stop ends the load. It can be called several times.
func (l *load) stop(t *testing.T) {
	t.Helper()
	select {
	case <-l.end:
	default:
		close(l.end)
	}
	if l.ended.Wait(); l.err != nil {
		t.Fatal(l.err)
	}
}
