package datadog_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// keepingPolicy asks for the ids of traces.
func keepingPolicy(t testing.TB) *datadog.Policy {
	t.Helper()
	p, ok := datadog.NewPolicy(agentPeerTags, []string{"client", "consumer", "producer", "server"}, nil,
		datadog.Labels{TraceIDs: true})
	if !ok {
		t.Fatal("refused")
	}
	return p
}

// sampledTrace is one of two spans that count and one between them that does not.
type sampledTrace struct {
	base      string // service
	priority  any    // nil: none
	high, low uint64
}

func (s *sampledTrace) spans(number int) (spans []spanV04) {
	for i, kind := range []string{"server", "internal", "client"} {
		span := spanV04{
			Service:  "s",
			Name:     "n",
			Resource: "r",
			TraceID:  s.low,
			SpanID:   uint64(10*number + i + 1),
			Start:    2e18,
			Duration: int64(number),
			Meta:     map[string]string{"span.kind": kind}, Metrics: map[string]float64{},
		}
		if span.ParentID = uint64(10*number + 1); i == 0 {
			span.ParentID = 0
		}
		if i == 0 && s.base != "" {
			span.Meta["_dd.base_service"] = s.base
		}
		if i == 0 && s.priority != nil {
			span.Metrics["_sampling_priority_v1"] = float64(s.priority.(int))
		}
		if i == 1 && s.high != 0 { // the tag may stand on any span
			span.Meta["_dd.p.tid"] = fmt.Sprintf("%016x", s.high)
		}
		spans = append(spans, span)
	}
	return spans
}

// sampled are traces of each kind. Where spans have a base service, theirs are another batch.
var sampled = []sampledTrace{
	{"", 1, 0x66f0a9b300000000, 1<<63 + 5},
	{"other", 2, 0, 6},
	{"", 0, 1, 7},
	{"", -1, 1, 8},
	{"", nil, 1, 9},
	{"", 1, 1, 0},
	{"other", 1, 3, 10},
}

// formsOf are the bodies of the traces in each format.
func formsOf(t *testing.T, all []sampledTrace) map[decode.Format][]byte {
	var v04, v05, chunks07, chunks1 []any
	dict := []string{""}
	number := func(s string) int {
		if !slices.Contains(dict, s) {
			dict = append(dict, s)
		}
		return slices.Index(dict, s)
	}
	streamed := streamedV1{"": 0}
	for i := range all {
		s := &all[i]
		spans := s.spans(i + 1)
		v04 = append(v04, spans)
		var spans05, spans1 []any
		for _, span := range spans {
			meta, metrics, attributes := map[int]int{}, map[int]float64{}, []any{}
			for k, v := range span.Meta {
				meta[number(k)] = number(v)
			}
			for k, v := range span.Metrics {
				metrics[number(k)] = v
			}
			spans05 = append(spans05,
				[]any{
					number("s"), number("n"), number("r"), span.TraceID, span.SpanID, span.ParentID,
					span.Start, span.Duration, 0, meta, metrics, 0,
				})
			if base := span.Meta["_dd.base_service"]; base != "" {
				attributes = append(attributes, streamed.of("_dd.base_service"), 1, streamed.of(base))
			}
			kind := map[string]int{"internal": 1, "server": 2, "client": 3}[span.Meta["span.kind"]]
			spans1 = append(spans1, ordered{
				1, streamed.of("s"), 2, streamed.of("n"), 3, streamed.of("r"), 4, span.SpanID, 5,
				span.ParentID, 6, uint64(span.Start), 7, uint64(span.Duration),
				9, attributes, 16, kind,
			})
		}
		v05 = append(v05, spans05)
		chunk07 := map[string]any{"spans": spans}
		id := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.high), s.low)
		chunk1 := ordered{6, id, 4, spans1}
		if s.priority != nil {
			chunk07["priority"] = s.priority
			chunk1 = append(chunk1, 1, s.priority)
		}
		chunks07, chunks1 = append(chunks07, chunk07), append(chunks1, chunk1)
	}
	return map[decode.Format][]byte{
		decode.FormatV04: encode(t, v04), decode.FormatV05: encode(t, []any{dict, v05}),
		decode.FormatV07: encode(t, map[string]any{"chunks": chunks07}),
		decode.FormatV1:  encode(t, ordered{11, chunks1}),
	}
}

// TestSpansOfTracesThatAreKept: in each format those that count, of each trace that sampling
// keeps and that has an id, with the ids that the tracer gave them and the place at which
// their batch has them.
func TestSpansOfTracesThatAreKept(t *testing.T) {
	for format, body := range formsOf(t, sampled) {
		c := datadog.NewCounter()
		if err := c.Count(format, body, "go", false, keepingPolicy(t)); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		var batches []string
		durations := map[[2]int32]uint64{}
		for base, spans := range c.Batches {
			for i := range spans.Snapshots {
				durations[[2]int32{int32(len(batches)), int32(i)}] = spans.Snapshots[i].Duration
			}
			batches = append(batches, base)
		}
		var got []string
		for _, k := range c.Kept() {
			high, low, span := c.IDs(k)
			got = append(got,
				fmt.Sprintf("%x %x %d %d %s", high, low, span, durations[[2]int32{k.Batch, k.At}],
					batches[k.Batch]))
		}
		want := []string{
			"66f0a9b300000000 8000000000000005 11 1 ", "66f0a9b300000000 8000000000000005 13 1 ",
			"0 6 21 2 other", "0 6 23 2 other", "3 a 71 7 other", "3 a 73 7 other",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s keeps %q\nwant %q", format, got, want)
		}
		checkKept(t, c)
	}
}

// TestNobodyIsAskedForIDs: without a policy that asks for them nothing is noted.
func TestNobodyIsAskedForIDs(t *testing.T) {
	c, body := datadog.NewCounter(), formsOf(t, sampled)[decode.FormatV04]
	if err := c.Count(decode.FormatV04, body, "go", false, policyOf(t)); err != nil || len(c.Kept()) != 0 {
		t.Errorf("%v, %d spans", err, len(c.Kept()))
	}
}

// TestIDsThatAreNone: the half that is no number of 16 digits is 0, and an id of another length
// than 16 bytes is that of no trace.
func TestIDsThatAreNone(t *testing.T) {
	for _, tag := range []string{
		"", "1", "66f0a9b30000000", "66f0a9b3000000000", "66f0a9b30000000g",
		"+6f0a9b300000000",
	} {
		spans := sampled[0].spans(1)
		spans[1].Meta["_dd.p.tid"] = tag
		c := datadog.NewCounter()
		if err := c.Count(decode.FormatV04, encode(t, []any{spans}), "go", false,
			keepingPolicy(t)); err != nil {
			t.Fatal(err)
		}
		if high, low, _ := c.IDs(c.Kept()[0]); high != 0 || low != sampled[0].low {
			t.Errorf("%q is read as %x", tag, high)
		}
	}
	for _, id := range [][]byte{nil, make([]byte, 15), make([]byte, 17), make([]byte, 16)} {
		for i := range id {
			id[i] = byte(len(id) % 16) // 0 of 16 bytes
		}
		span := ordered{1, "s", 2, "n", 3, "r", 4, 1, 6, uint64(2e18), 16, 2}
		body := encode(t, ordered{11, []any{ordered{1, 1, 6, id, 4, []any{span}}}})
		c := datadog.NewCounter()
		if err := c.Count(decode.FormatV1, body, "go", false, keepingPolicy(t)); err == nil &&
			len(c.Kept()) != 0 {
			t.Errorf("an id of %d bytes is one", len(id))
		}
	}
}

// TestSpansWithoutIDsLeaveNoneToTheNextTrace, nor to the next body.
func TestSpansWithoutIDsLeaveNoneToTheNextTrace(t *testing.T) {
	c := datadog.NewCounter()
	with, without := sampled[0].spans(1), map[string]any{
		"service": "s", "name": "n", "resource": "r", "span_id": 5, "start": int64(2e18), "duration": 1,
		"meta":    map[string]string{"span.kind": "server"},
		"metrics": map[string]float64{"_sampling_priority_v1": 1},
	}
	for _, body := range [][]any{{with, []any{without}}, {[]any{without}}} {
		if err := c.Count(decode.FormatV04, encode(t, body), "go", false, keepingPolicy(t)); err != nil {
			t.Fatal(err)
		}
		for _, k := range c.Kept() {
			if _, _, span := c.IDs(k); span == 5 {
				t.Errorf("a span without the id of a trace is kept")
			}
		}
	}
}
