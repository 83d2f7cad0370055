package spans

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// shares lists sampling shares with their thresholds, as the specification writes them.
var shares = []struct {
	share float64
	th    string
}{{1, "0"}, {0.5, "8"}, {0.25, "c"}, {0.1, "e666"}, {0.75, "4"}, {0, ""}}

// keeper is the sampler of the specification for a share with this threshold.
type keeper struct {
	sampling.Policy
	th string
}

// wanted returns the traces of a request that are forwarded because they contain an error (if k.Errors
// is set) or a slow root span (if k.Slow is set).
func (k *keeper) wanted(request *trace.TracesData) map[string]bool {
	wanted := map[string]bool{}
	eachSpan(request, func(s *trace.Span) {
		isRoot := strings.Trim(string(s.ParentSpanId), "\x00") == ""
		isSlow := s.EndTimeUnixNano > s.StartTimeUnixNano &&
			s.EndTimeUnixNano-s.StartTimeUnixNano >= uint64(k.Slow)
		if k.Errors && s.Status.GetCode() == trace.Status_STATUS_CODE_ERROR || k.Slow > 0 && isRoot &&
			isSlow {
			wanted[idOf(s)] = true
		}
	})
	return wanted
}

// idOf returns a span's trace ID. A missing ID counts as the zero ID.
func idOf(s *trace.Span) string {
	return string(append(slices.Clone(s.TraceId), make([]byte, 16)...)[:16])
}

func eachSpan(request *trace.TracesData, visit func(*trace.Span)) {
	for _, r := range request.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				visit(s)
			}
		}
	}
}

// goesOn reports whether a span is forwarded, and updates its tracestate.
func (k *keeper) goesOn(s *trace.Span, wanted map[string]bool) bool {
	now := stateOf(s.TraceState)
	threshold, _ := strconv.ParseUint((k.th + strings.Repeat("0", 14))[:14], 16, 64)
	if k.Share == 0 {
		threshold = 1 << 56
	}
	switch {
	case wanted[idOf(s)] || threshold == 0:
		return true
	case now.isTrue() && now.threshold() >= threshold:
		return true
	}
	randomness := binary.BigEndian.Uint64([]byte(idOf(s)[8:])) & (1<<56 - 1)
	if now.rv != "" {
		randomness = now.randomness()
	}
	if randomness < threshold {
		return false
	}
	s.TraceState = now.with(k.th)
	return true
}

// with returns the tracestate with another threshold, and with as many of the other entries as fit the
// limits.
func (s *state) with(th string) string {
	own := ""
	for _, pair := range s.own {
		if len(own)+len(pair)+len(";th:")+14 <= 256 {
			own += pair + ";"
		}
	}
	all := "ot=" + own + "th:" + th
	for i, other := range s.others {
		if i+2 > 32 || len(all)+1+len(other) > 1024 {
			break
		}
		all += "," + other
	}
	return all
}

// keep removes the spans that are not forwarded from a request and counts both kinds.
func (k *keeper) keep(request *trace.TracesData) (kept, gone sampling.Tally) {
	wanted, traces := k.wanted(request), map[string]bool{}
	request.ResourceSpans = slices.DeleteFunc(request.ResourceSpans, func(r *trace.ResourceSpans) bool {
		scopes := len(r.ScopeSpans)
		r.ScopeSpans = slices.DeleteFunc(r.ScopeSpans, func(scope *trace.ScopeSpans) bool {
			spans := len(scope.Spans)
			scope.Spans = slices.DeleteFunc(scope.Spans, func(s *trace.Span) bool {
				isKept := k.goesOn(s, wanted)
				traces[idOf(s)] = traces[idOf(s)] || isKept
				if isKept {
					kept.Spans++
				} else {
					gone.Spans++
				}
				return !isKept
			})
			return spans > 0 && len(scope.Spans) == 0
		})
		return scopes > 0 && len(r.ScopeSpans) == 0
	})
	for _, isKept := range traces {
		if isKept {
			kept.Traces++
		} else {
			gone.Traces++
		}
	}
	return kept, gone
}

// forwardedPart returns the forwarded part of a counted body.
func forwardedPart(t testing.TB, c *otel.Counter, body []byte, k *sampling.Policy) (forwarded []byte, kept,
	gone sampling.Tally,
) {
	t.Helper()
	var sample sampling.Sample
	found := sample.Select(c.Request(), k, false)
	if forwarded = body; !found.IsUnchanged {
		forwarded = sample.AppendSelected(nil)
	}
	if len(forwarded) != found.Size {
		t.Fatalf("%d bytes were measured, %d written", found.Size, len(forwarded))
	}
	return forwarded, found.Sampled, found.SampledOut
}

// checkKeep compares the forwarded part of a body with the result of the simple sampler.
func checkKeep(t testing.TB, c *otel.Counter, body []byte, k keeper) {
	t.Helper()
	if c.Count(body, policy) != nil {
		return
	}
	before := bytes.Clone(body)
	forwarded, kept, gone := forwardedPart(t, c, body, &k.Policy)
	if !bytes.Equal(body, before) {
		t.Fatal("the body was written to")
	}
	if len(forwarded) > sampling.SelectionBytes(len(body)) {
		t.Fatalf("%d bytes forwarded of %d, above the limit", len(forwarded), len(body))
	}
	got, isRequest := decode(forwarded)
	want, _ := decode(body)
	if !isRequest || (got == nil) && want != nil {
		t.Fatalf("the forwarded part is not a request: %q of %q", forwarded, body)
	}
	if want == nil {
		return
	}
	original := proto.Clone(want)
	wantKept, wantGone := k.keep(want)
	if kept != wantKept || gone != wantGone {
		t.Fatalf("%+v: forwarded %+v, sampled out %+v, want %+v and %+v", k, kept, gone, wantKept, wantGone)
	}
	if !proto.Equal(got, want) {
		t.Fatalf("%+v: forwarded\n%v\nwant\n%v", k, got, want)
	}
	if proto.Equal(want, original) && !bytes.Equal(forwarded, body) {
		t.Fatalf("everything is forwarded, but not unchanged:\n%q\n%q", forwarded, body)
	}
}

func randomKeeper(rnd *rand.Rand) (k keeper) {
	of := shares[rnd.IntN(len(shares))]
	k.Share, k.th, k.Errors, k.Slow = of.share, of.th, rnd.IntN(2) == 0, time.Duration(rnd.IntN(2)*rnd.IntN(1<<30))
	return k
}

func TestSampling_SameAsPlainSampler(t *testing.T) {
	c := otel.NewCounter()
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		checkKeep(t, c, encode(t, randomRequest(rnd)), randomKeeper(rnd))
	}
}

// FuzzKeep checks the same for arbitrary bytes.
func FuzzKeep(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(encode(f, randomRequest(rand.New(rand.NewPCG(seed, 4)))), seed)
	}
	c := otel.NewCounter()
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		checkKeep(t, c, body, randomKeeper(rand.New(rand.NewPCG(seed, 5))))
	})
}

// TestSampling_TwiceIsSmallerShare checks that sampling twice, by one share and then by a smaller
// one, has the same result and the same weights as sampling once by the smaller share.
func TestSampling_TwiceIsSmallerShare(t *testing.T) {
	once, then := otel.NewCounter(), otel.NewCounter()
	for seed := range uint64(100) {
		body := encode(t, randomRequest(rand.New(rand.NewPCG(seed, 6))))
		keep := func(c *otel.Counter, body []byte, share float64) []byte {
			if err := c.Count(body, policy); err != nil {
				t.Fatal(err)
			}
			forwarded, _, _ := forwardedPart(t, c, body, &sampling.Policy{Share: share})
			return forwarded
		}
		direct, _ := decode(keep(once, body, 0.25))
		twice, _ := decode(keep(then, keep(once, body, 0.5), 0.25))
		if !proto.Equal(direct, twice) {
			t.Fatalf("at once\n%v\nin two\n%v", direct, twice)
		}
	}
}
