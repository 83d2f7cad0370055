package traces

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace/idx"
	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling/unsampled"
	"google.golang.org/protobuf/proto"
)

// TestBody_RemovedTracesLeaveRestUnchanged removes unsampled traces from random v1.0 bodies. The
// agent must read the same facts and the same remaining traces, with each string at its original
// number.
func TestBody_RemovedTracesLeaveRestUnchanged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(10, 77))
	c, policy := dd.NewCounter(), agentPolicy(t, makeOracle().conf)
	cuts, saved, uncounted := 0, 0, 0
	for i := range 5_000 {
		body := randomPayload(rnd, time.Now()).v1(rnd)
		if err := c.Count(datadog.FormatV1, body, "go", true, policy); err != nil {
			uncounted++
			continue
		}
		original := bytes.Clone(body)
		rest, cutTraces, cutSpans := unsampled.Cut(c.Decoded())
		if cutTraces == 0 {
			if !bytes.Equal(rest, original) {
				t.Fatalf("case %d: nothing was removed, but the body differs", i)
			}
			continue
		}
		cuts++
		saved += len(original) - len(rest)
		before, after := decodeV1(t, original), decodeV1(t, rest)
		kept, spans := keptOf(before)
		if len(before.Chunks)-len(kept) != cutTraces || spans != cutSpans || len(rest) > len(original) {
			t.Fatalf("case %d: %d traces with %d spans were removed of %d", i, cutTraces, cutSpans,
				len(before.Chunks))
		}
		before.Chunks = kept
		was, is := before.ToProto(), after.ToProto()
		if len(is.Strings) > len(was.Strings) || !slices.Equal(is.Strings, was.Strings[:len(is.Strings)]) {
			t.Fatalf("case %d: got strings %q, want %q", i, is.Strings, was.Strings)
		}
		if was.Strings, is.Strings = nil, nil; !proto.Equal(was, is) {
			t.Fatalf("case %d: got\n%v, want\n%v", i, is, was)
		}
	}
	t.Logf("traces were removed from %d bodies, %d bytes each; %d left to the agent", cuts, saved/max(1, cuts),
		uncounted)
	if cuts < 500 {
		t.Errorf("traces were removed from only %d bodies: the comparison has little coverage", cuts)
	}
}

func decodeV1(t *testing.T, body []byte) *idx.InternalTracerPayload {
	t.Helper()
	p, err := decode(datadog.FormatV1, body, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keptOf returns the remaining traces and the number of spans in the removed ones.
func keptOf(p *idx.InternalTracerPayload) (kept []*idx.InternalTraceChunk, spans int) {
	for _, chunk := range p.Chunks {
		isRequired := slices.ContainsFunc(chunk.Spans, func(s *idx.InternalSpan) bool {
			_, isSampled := s.GetAttributeAsString("_dd.span_sampling.mechanism")
			_, isEvent := s.GetAttributeAsString("_dd1.sr.eausr")
			return s.Error() || isSampled || isEvent
		})
		if chunk.Priority > 0 || isRequired || len(chunk.Spans) == 0 {
			kept = append(kept, chunk)
		} else {
			spans += len(chunk.Spans)
		}
	}
	return kept, spans
}
