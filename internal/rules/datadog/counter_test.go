package datadog_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling/unsampled"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/vmihailenco/msgpack/v5"
)

// TestFormats_Agree: the same traces yield the same batches in each format. In every other trace,
// the inner one of four spans is measured.
func TestFormats_Agree(t *testing.T) {
	for _, f := range examples {
		c := datadog.NewCounter()
		if err := c.Count(f.format, f.body(t, 100), "go", true, policyOf(t)); err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		if n := countedSpans(t, c); n != 350 {
			t.Errorf("%s: %d spans counted, want 350", f.name, n)
		}
		if got := c.Origin(span.Origin{}).Env; got != "prod" {
			t.Errorf("%s: env %q", f.name, got)
		}
	}
}

// TestIgnore_Resources: a trace is ignored because of its root's resource.
func TestIgnore_Resources(t *testing.T) {
	w, ok := datadog.NewPolicy(nil, []string{"server", "client"}, []string{"^GET /route/3$"},
		datadog.Labels{})
	if !ok {
		t.Fatal("refused")
	}
	c := datadog.NewCounter()
	if err := c.Count(decode.FormatV04, bodyV04(t, 16), "go", true, w); err != nil {
		t.Fatal(err)
	}
	if n := countedSpans(t, c); n != 15*3+7 {
		t.Errorf("%d spans counted", n)
	}
	if _, ok := datadog.NewPolicy(nil, nil, []string{"("}, datadog.Labels{}); ok {
		t.Error("an invalid expression was accepted")
	}
}

// TestCounter_CutsUnsampledTraces: exactly the unsampled traces are cut out of a body, and the rest is a body of the same
// format.
func TestCounter_CutsUnsampledTraces(t *testing.T) {
	for _, f := range examples {
		for _, traces := range []int{1, 2, 15, 16, 40} {
			c, w, body := datadog.NewCounter(), policyOf(t), f.body(t, traces)
			size := len(body)
			if err := c.Count(f.format, body, "go", true, w); err != nil {
				t.Fatal(err)
			}
			left, cutTraces, cutSpans := unsampled.Cut(c.Decoded())
			if len(left) > size || len(left) == size && traces > 1 {
				t.Errorf("%s: %d of %d bytes are left of %d traces", f.name, len(left), size, traces)
			}
			if cutTraces != traces/2 || cutSpans != 4*cutTraces {
				t.Errorf("%s: of %d traces %d were cut, with %d spans", f.name, traces, cutTraces, cutSpans)
			}
			if err := c.Count(f.format, left, "go", true, w); err != nil {
				t.Fatalf("%s: what is left of %d traces: %v", f.name, traces, err)
			}
			if table, _ := c.Decoded(); len(table.Groups) != traces-cutTraces {
				t.Errorf("%s: %d bytes are left, with %d traces", f.name, len(left), len(table.Groups))
			}
			if _, again, _ := unsampled.Cut(c.Decoded()); again != 0 {
				t.Errorf("%s: %d more traces were cut", f.name, again)
			}
		}
	}
}

// TestCut_WithoutUnsampledTrace: the body stays unchanged even if a trace without
// spans precedes others. A cut body does not contain empty traces.
func TestCut_WithoutUnsampledTrace(t *testing.T) {
	type object = map[string]any
	chunk := func(spans ...any) object { return object{"priority": 1, "spans": append([]any{}, spans...)} }
	kept := object{
		"service": "s", "name": "n", "resource": "r", "span_id": 1, "start": 1, "duration": 1,
		"metrics": object{"_sampling_priority_v1": 1.0},
	}
	for format, sent := range map[decode.Format]any{
		decode.FormatV04: []any{[]any{}, []any{kept}, []any{kept}},
		decode.FormatV07: object{"chunks": []any{chunk(), chunk(kept), chunk(kept)}},
	} {
		body, err := msgpack.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		c, before := datadog.NewCounter(), bytes.Clone(body)
		if err := c.Count(format, body, "go", true, policyOf(t)); err != nil {
			t.Fatal(err)
		}
		if left, traces, _ := unsampled.Cut(c.Decoded()); traces != 0 || !bytes.Equal(left, before) {
			t.Errorf("%s: %d traces were cut: %q, want %q", format, traces, left, before)
		}
	}
}

// TestCountAlloc: counting a body allocates nothing once the counter is warm.
func TestCountAlloc(t *testing.T) {
	for _, f := range examples {
		for _, topLevel := range []bool{true, false} {
			c, w, body := datadog.NewCounter(), policyOf(t), f.body(t, 200)
			count := func() {
				if err := c.Count(f.format, body, "go", topLevel, w); err != nil {
					t.Fatal(err)
				}
			}
			count()
			if n := testing.AllocsPerRun(20, count); n != 0 {
				t.Errorf("%s, top-level by the tracer %v: %v allocations", f.name, topLevel, n)
			}
			for lang, policy := "go", tracersPolicy(t); lang != ""; lang = map[string]string{
				"go":     "python",
				"python": "nodejs", "nodejs": "java",
			}[lang] {
				count := func() {
					if err := c.Count(f.format, body, lang, topLevel, policy); err != nil {
						t.Fatal(err)
					}
				}
				count()
				if n := testing.AllocsPerRun(20, count); n != 0 {
					t.Errorf("%s of %s with its own labels: %v allocations", f.name, lang, n)
				}
			}
		}
	}
}

// languages contains the languages of tracers with a rulebook, and another one.
var languages = []string{"", "go", "python", "nodejs", "java"}

// FuzzCount: a counter does not panic on any bytes, its snapshots are valid in the native protocol,
// and the result does not depend on earlier bodies.
func FuzzCount(f *testing.F) {
	for _, b := range examples {
		f.Add(uint8(b.format), true, b.body(f, 2))
		f.Add(uint8(b.format), false, b.body(f, 1))
		for i := range uint8(len(languages)) {
			f.Add(uint8(b.format)+4*i, false, b.body(f, 1))
		}
	}
	agents, tracers, keeping := policyOf(f), tracersPolicy(f), keepingPolicy(f)
	c := datadog.NewCounter()
	c.Now = func() time.Time { return time.Unix(1e9, 0) }
	f.Fuzz(func(t *testing.T, format uint8, topLevel bool, body []byte) {
		fresh := datadog.NewCounter()
		fresh.Now = c.Now
		w, lang := agents, languages[format/4%uint8(len(languages))]
		if lang != "" {
			w = tracers
		}
		err, other := c.Count(decode.Format(format%4), body, lang, topLevel,
			w), fresh.Count(decode.Format(format%4), body, lang, topLevel, w)
		if (err == nil) != (other == nil) {
			t.Fatalf("%v, and where nothing was met before %v", err, other)
		}
		if err == nil {
			countedSpans(t, c)
			same(t, c, fresh)
		}
		keeps := datadog.NewCounter()
		keeps.Now = c.Now
		if w == agents && keeps.Count(decode.Format(format%4), body, lang, topLevel, keeping) == nil {
			if err != nil {
				t.Fatalf("%v, and with the ids of traces none", err)
			}
			same(t, c, keeps)
			checkKept(t, keeps)
		}
	})
}

// checkKept verifies that the kept spans are spans of the batches, in order, of traces with IDs.
func checkKept(t *testing.T, c *datadog.Counter) {
	t.Helper()
	var sizes []int32
	for _, batch := range c.Batches {
		sizes = append(sizes, int32(len(batch.Snapshots)))
	}
	next := make([]int32, len(sizes))
	for _, k := range c.SampledSpans() {
		if k.Index < next[k.Batch] || k.Index >= sizes[k.Batch] {
			t.Fatalf("span %d of batch %d, which has %d, and %d came before", k.Index, k.Batch, sizes[k.Batch],
				next[k.Batch])
		}
		next[k.Batch] = k.Index + 1
		if _, low, span := c.IDs(k); low == 0 || span == 0 {
			t.Fatalf("span %d of trace %d", span, low)
		}
	}
}

// keepingPolicy returns a policy that asks for trace IDs.
func keepingPolicy(t testing.TB) *datadog.Policy {
	t.Helper()
	p, ok := datadog.NewPolicy(agentPeerTags, []string{"client", "consumer", "producer", "server"}, nil,
		datadog.Labels{TraceIDs: true})
	if !ok {
		t.Fatal("refused")
	}
	return p
}

// sampledTrace is a trace of two counted spans with an uncounted span between them.
type sampledTrace struct {
	base      string // service
	priority  any    // nil if the trace has no priority
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
		if i == 1 && s.high != 0 { // any span can have the tag
			span.Meta["_dd.p.tid"] = fmt.Sprintf("%016x", s.high)
		}
		spans = append(spans, span)
	}
	return spans
}

// sampled returns traces of each kind. Spans with a base service are in another batch.
var sampled = []sampledTrace{
	{"", 1, 0x66f0a9b300000000, 1<<63 + 5},
	{"other", 2, 0, 6},
	{"", 0, 1, 7},
	{"", -1, 1, 8},
	{"", nil, 1, 9},
	{"", 1, 1, 0},
	{"other", 1, 3, 10},
}

// formsOf returns the bodies of the traces in each format.
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

// TestSampledSpans_SpansOfSampledTraces: in each format, SampledSpans returns the counted spans of each sampled
// trace that has an ID, with their IDs and their indexes in the batches.
func TestSampledSpans_SpansOfSampledTraces(t *testing.T) {
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
		for _, k := range c.SampledSpans() {
			high, low, span := c.IDs(k)
			got = append(got,
				fmt.Sprintf("%x %x %d %d %s", high, low, span, durations[[2]int32{k.Batch, k.Index}],
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

// TestSampledSpans_NoneWithoutTraceIDs: a policy without trace IDs keeps no spans.
func TestSampledSpans_NoneWithoutTraceIDs(t *testing.T) {
	c, body := datadog.NewCounter(), formsOf(t, sampled)[decode.FormatV04]
	if err := c.Count(decode.FormatV04, body, "go", false, policyOf(t)); err != nil || len(c.SampledSpans()) != 0 {
		t.Errorf("%v, %d spans", err, len(c.SampledSpans()))
	}
}

// TestTraceID_Invalid: an upper half without 16 hexadecimal digits is 0, and an ID whose length is
// not 16 bytes is not used.
func TestTraceID_Invalid(t *testing.T) {
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
		if high, low, _ := c.IDs(c.SampledSpans()[0]); high != 0 || low != sampled[0].low {
			t.Errorf("%q is read as %x", tag, high)
		}
	}
	for _, id := range [][]byte{nil, make([]byte, 15), make([]byte, 17), make([]byte, 16)} {
		for i := range id {
			id[i] = byte(len(id) % 16) // all bytes are 0 if the length is 16
		}
		span := ordered{1, "s", 2, "n", 3, "r", 4, 1, 6, uint64(2e18), 16, 2}
		body := encode(t, ordered{11, []any{ordered{1, 1, 6, id, 4, []any{span}}}})
		c := datadog.NewCounter()
		if err := c.Count(decode.FormatV1, body, "go", false, keepingPolicy(t)); err == nil &&
			len(c.SampledSpans()) != 0 {
			t.Errorf("an id of %d bytes is one", len(id))
		}
	}
}

// TestTraceID_MissingDoesNotAffectNextTrace checks that spans without trace IDs do not affect the
// next trace or body.
func TestTraceID_MissingDoesNotAffectNextTrace(t *testing.T) {
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
		for _, k := range c.SampledSpans() {
			if _, _, span := c.IDs(k); span == 5 {
				t.Errorf("a span without the id of a trace is kept")
			}
		}
	}
}

// inUse returns the memory of the heap and the stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// keptAtMost is the limit on memory that a counter keeps between bodies.
const keptAtMost = 16 << 20

// TestCounter_WithinItsMemory: whatever a body contains, a counter does not exceed its part of the
// memory limit, with or without trace IDs.
func TestCounter_WithinItsMemory(t *testing.T) {
	checkPromise(t, policyOf(t), false)
	checkPromise(t, keepingPolicy(t), true)
}

func checkPromise(t *testing.T, w *datadog.Policy, traceIDs bool) {
	t.Helper()
	for _, length := range []int{64 << 10, 1 << 20, 25 << 20} {
		for name, body := range greedy(length) {
			format := decode.FormatV05
			if name == "strings of v1" {
				format = decode.FormatV1
			}
			c := datadog.NewCounter()
			before := inUse()
			err := c.Count(format, body, "go", false, w)
			held := inUse() - before
			t.Logf("%d KiB of %s: %d KiB held, %d promised: %v", len(body)>>10, name, held>>10,
				datadog.CounterBytes(len(body), traceIDs)>>10, err)
			if held > datadog.CounterBytes(length, traceIDs) {
				t.Errorf("%d bytes of %s made it hold %d", len(body), name, held)
			}
			if c.Release(); inUse()-before > keptAtMost {
				t.Errorf("%d bytes of %s make it hold %d for the next body", len(body), name, inUse()-before)
			}
			runtime.KeepAlive(c)
			runtime.KeepAlive(body)
		}
	}
}

// TestLimits_IndependentOfEarlierBodies: the limits for a short body are the same for a counter that counted a
// longer body before.
func TestLimits_IndependentOfEarlierBodies(t *testing.T) {
	c, w := datadog.NewCounter(), policyOf(t)
	for _, length := range []int{1 << 20, 64 << 10} {
		if c.Count(decode.FormatV05, greedy(length)["tags"], "go", false, w) == nil {
			t.Errorf("%d bytes of tags were counted", length)
		}
	}
}

// TestCounter_ReleasesBody: a counter releases a body, whether it was
// counted or left to the agent.
func TestCounter_ReleasesBody(t *testing.T) {
	for _, cut := range []int{0, 1} {
		c, w := datadog.NewCounter(), policyOf(t)
		last := func() weak.Pointer[byte] {
			body := bodyV04(t, 100)
			body = slices.Clone(body[:len(body)-cut])
			if err := c.Count(decode.FormatV04, body, "go", false, w); (err == nil) != (cut == 0) {
				t.Fatal(err)
			}
			return weak.Make(&body[0])
		}()
		c.Release()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("cut by %d: the last body is still held", cut)
		}
		runtime.KeepAlive(c)
	}
}

// array32 appends the header of an array, or of a map for another lead byte.
func array32(lead byte, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{lead}, uint32(n))
}

// greedy returns bodies of the given length whose contents need the most memory.
func greedy(length int) map[string][]byte {
	dict := append([]byte{0x92, 0x96, 0xa0, 0xa1, 's', 0xa1, 'o', 0xac}, "_dd.measured"...)
	dict = append(append(dict, 0xad), "_dd.base_service"[:13]...)
	dict = append(dict, 0xa1, '1')
	span := []byte{
		0x9c, 1, 2, 2, 1, 1, 0, 0xcf, 0x0d, 0xe0, 0xb6, 0xb3, 0xa7, 0x64, 0, 0, 1, 0, 0x80, 0x80,
		0,
	}
	spans := func(n int) []byte { return bytes.Repeat(span, n) }
	n := length / len(span)
	tags := length / 2
	all := map[string][]byte{
		"spans":  slices.Concat(dict, []byte{0x91}, array32(0xdd, n), spans(n)),
		"traces": slices.Concat(dict, array32(0xdd, n), bytes.Repeat(append([]byte{0x91}, span...), n)),
		"tags": slices.Concat(dict, []byte{0x91, 0x91}, span[:len(span)-3], []byte{0x80},
			array32(0xdf, tags), bytes.Repeat([]byte{3, 1}, tags), []byte{0}),
	}
	long := bytes.Repeat([]byte{'x'}, length/4)
	several := length / 2 / len(span)
	all["labels"] = slices.Concat([]byte{0x92, 0x94, 0xa0, 0xa1, 's'}, array32(0xdb, len(long)), long,
		[]byte{0xa1, 'x'},
		[]byte{0x91}, array32(0xdd, several), spans(several))
	broken := slices.Concat(bytes.Repeat([]byte{0xff}, 4000), []byte{'x'})
	all["broken labels"] = slices.Concat([]byte{0x92, 0x94, 0xa0, 0xa1, 's'}, array32(0xdb, len(broken)),
		broken, []byte{0xa1, 'x'},
		[]byte{0x91}, array32(0xdd, several), spans(several))
	texts := length / 4
	list := array32(0xdd, texts)
	for i := range texts {
		list = append(list, 0xa3, byte(i), byte(i>>8), byte(i>>16))
	}
	all["strings"] = slices.Concat([]byte{0x92}, list, []byte{0x90})
	all["strings of v1"] = slices.Concat([]byte{0x81, 0x01}, list)
	return all
}
