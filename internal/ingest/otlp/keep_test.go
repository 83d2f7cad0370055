package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"google.golang.org/protobuf/encoding/protowire"
)

// randomTraces returns a request with count traces of two spans each and random ids, and these ids.
func randomTraces(random *rand.Rand, count int) (request []byte, ids []string) {
	var scope []byte
	now := uint64(time.Now().UnixNano())
	for range count {
		id := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, random.Uint64()|1),
			random.Uint64())
		ids = append(ids, string(id))
		for range 2 {
			s := nested(nested(nil, 1, id), 2, binary.BigEndian.AppendUint64(nil, random.Uint64()|1))
			s = number(number(nested(s, 5, []byte("name 0")), 7, now-1000), 8, now)
			scope = nested(scope, 2, s)
		}
	}
	return nested(nil, 1, nested(nil, 2, scope)), ids
}

// spansIn returns the number of spans per trace id of a request, and the set of their tracestates.
func spansIn(request []byte) (byTrace map[string]int, states map[string]bool) {
	byTrace, states = map[string]int{}, map[string]bool{}
	each := func(message []byte, field protowire.Number, with func(value []byte)) {
		eachField(message, func(n protowire.Number, _ uint64, value []byte) {
			if n == field {
				with(value)
			}
		})
	}
	each(request, 1, func(resource []byte) {
		each(resource, 2, func(scope []byte) {
			each(scope, 2, func(s []byte) {
				each(s, 1, func(id []byte) { byTrace[string(id)]++ })
				each(s, 3, func(state []byte) { states[string(state)] = true })
			})
		})
	})
	return byTrace, states
}

// TestSampling_CompleteTracesByID checks that complete traces are sampled by their ids, with the threshold in the tracestate,
// and that every span is counted. A quarter of all ids has a randomness of 0xc0000000000000 or more.
func TestSampling_CompleteTracesByID(t *testing.T) {
	for _, isGRPC := range []bool{false, true} {
		to := newCollector(t, isGRPC, nil)
		forward := forwardTo(t, to.url())
		h := newHarness(t, func(c *Config, a *aggregate.Config) {
			forward(c, a)
			c.Keep = &sampling.Policy{Share: 0.25}
		})
		plain, streams, random := h.client(false), h.client(true), rand.New(rand.NewPCG(1, 2))
		on := 0
		for round := range 6 {
			request, ids := randomTraces(random, 200)
			isPacked := round%2 == 0
			came := request
			if isPacked {
				came = packed(request)
			}
			var a answered
			if round%3 == 0 {
				a = postGRPC(t, streams, framed(came, isPacked), headerGRPCEncoding,
					map[bool]string{true: "gzip", false: "identity"}[isPacked])
			} else {
				a = post(t, plain, came, "Content-Encoding",
					map[bool]string{true: "gzip", false: ""}[isPacked])
			}
			if a.status != http.StatusOK {
				t.Fatalf("answered %+v", a)
			}
			got := to.last()
			message := got.body
			if isGRPC {
				var flag bool
				var err error
				if message, flag, err = unframe(message); err != nil || flag != isPacked {
					t.Fatal(err, flag)
				}
			}
			if isPacked {
				r, err := gzip.NewReader(bytes.NewReader(message))
				if err != nil {
					t.Fatal(err)
				}
				if message, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
			byTrace, states := spansIn(message)
			for _, id := range ids {
				want := 0
				if binary.BigEndian.Uint64([]byte(id)[8:])&(1<<56-1) >= 0xc0000000000000 {
					want, on = 2, on+1
				}
				if byTrace[id] != want {
					t.Errorf("of trace %x %d spans went on, want %d", id, byTrace[id], want)
				}
			}
			if len(states) != 1 || !states["ot=th:c"] || got.header.Get(headerComputedStats) != "yes" {
				t.Errorf("the tracestates are %v, the header %v", states, got.header)
			}
		}
		h.stop()
		stats := h.Stats()
		if h.rows["name 0"] != 6*400 || stats.SampledTraces != uint64(on) ||
			stats.SampledOutTraces != uint64(1200-on) || stats.SampledSpans != uint64(2*on) || stats.SavedBytes == 0 {
			t.Errorf("%d traces went on; counted %v, statistics %+v", on, h.rows, stats)
		}
	}
}

// TestSampling_RetriesAreReportedOnce checks that each retry of a request is sampled and forwarded again, but that the
// sampling statistics include it once.
func TestSampling_RetriesAreReportedOnce(t *testing.T) {
	to := newCollector(t, false, func(w http.ResponseWriter, n int) {
		if n < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	forward := forwardTo(t, to.url())
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forward(c, a)
		c.Keep = &sampling.Policy{Share: 0.5}
	})
	request, _ := randomTraces(rand.New(rand.NewPCG(9, 10)), 100)
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK} {
		if a := post(t, h.client(false), request); a.status != want {
			t.Fatalf("answered %d, want %d", a.status, want)
		}
	}
	h.stop()
	if stats := h.Stats(); h.rows["name 0"] != 200 || stats.SampledTraces+stats.SampledOutTraces != 100 ||
		stats.SampledTraces == 0 {
		t.Errorf("counted %v, %d traces are reported as sampled and %d as dropped", h.rows, stats.SampledTraces,
			stats.SampledOutTraces)
	}
}

// TestSampling_NothingSampledIsAccepted checks that a request without sampled traces is accepted without the upstream.
func TestSampling_NothingSampledIsAccepted(t *testing.T) {
	to := newCollector(t, false, nil)
	forward := forwardTo(t, to.url())
	h := newHarness(t, func(c *Config, a *aggregate.Config) { forward(c, a); c.Keep = &sampling.Policy{} })
	request, _ := randomTraces(rand.New(rand.NewPCG(3, 4)), 10)
	if a := post(t, h.client(false), request); a.status != http.StatusOK || len(a.body) != 0 ||
		to.last().path != "" {
		t.Errorf("answered %+v; the destination got %q", a, to.last().path)
	}
	if a := post(t, h.client(false), []byte("nonsense")); a.status != http.StatusOK ||
		string(to.last().body) != "nonsense" {
		t.Errorf("answered %+v; the destination got %q", a, to.last().body)
	}
	h.stop()
	if h.rows["name 0"] != 20 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestSampling_CompressionWithinReservedMemory checks that incompressible bytes need no more than the reserved memory.
func TestSampling_CompressionWithinReservedMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	h := newHarness(t, nil)
	var p compressor
	for _, n := range []int{0, 1, 1 << 10, 1 << 16, 1<<20 + 7} {
		message := make([]byte, n)
		for i := range message {
			message[i] = byte(random.Uint32())
		}
		to := h.Bodies.Take(maxCompressedBytes(n))
		room := cap(to.Bytes)
		if p.appendCompressed(to, message); cap(to.Bytes) != room {
			t.Errorf("%d bytes take %d, %d are set aside", n, len(to.Bytes), room)
		}
		to.Release()
	}
}

// TestSampling_ThresholdIfAllAreSampled covers a request of which all traces are sampled.
func TestSampling_ThresholdIfAllAreSampled(t *testing.T) {
	to := newCollector(t, false, nil)
	forward := forwardTo(t, to.url())
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forward(c, a)
		c.Keep = &sampling.Policy{Share: 0.25}
	})
	high := append(make([]byte, 8), bytes.Repeat([]byte{0xff}, 8)...)
	request := nested(nil, 1, nested(nil, 2, nested(nil, 2, nested(nested(nil, 1, high), 2, high[8:]))))
	if a := post(t, h.client(false), request); a.status != http.StatusOK {
		t.Fatalf("answered %+v", a)
	}
	if byTrace, states := spansIn(to.last().body); byTrace[string(high)] != 1 || !states["ot=th:c"] {
		t.Errorf("%v went on with %v", byTrace, states)
	}
}
