package unsampled_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling/unsampled"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/vmihailenco/msgpack/v5"
)

var names = spantable.NewNames(datadog.TraceTags[:])

// object is a map whose pairs are encoded in the given order.
type object []any

func (o object) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeMapLen(len(o) / 2); err != nil {
		return err
	}
	for _, v := range o {
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// trace is a trace with a number of spans, each with its own service.
type trace struct {
	priority int
	spans    int
	failed   bool
	tag      string // tag of the last span
}

// service returns the service of a span, given its number in the body. Longer services make a v1.0
// body longer.
func service(number int) string { return fmt.Sprintf("the service of span %032d", number) }

// bodies returns the traces in each format.
func bodies(t *testing.T, traces []trace) map[datadog.Format][]byte {
	t.Helper()
	var v04, v05, v07, v1 []any
	dict, streamed, number := []string{"", "_sampling_priority_v1", "env", "prod"}, map[string]int{
		"":   0,
		"go": 1,
	}, 0
	stream := func(s string) any {
		if n, ok := streamed[s]; ok {
			return n
		}
		streamed[s] = len(streamed)
		return s
	}
	for _, tr := range traces {
		spans04, spans05, spans1 := []any{}, []any{}, []any{}
		for i := range tr.spans {
			number++
			failed, metrics := 0, object{"_sampling_priority_v1", tr.priority}
			if tr.failed {
				failed = 1
			}
			attributes := []any{stream("env"), 1, stream("prod")}
			metrics05 := object{1, tr.priority}
			if tr.tag != "" && i == tr.spans-1 {
				metrics = append(metrics, tr.tag, 1)
				if !slices.Contains(dict, tr.tag) {
					dict = append(dict, tr.tag)
				}
				metrics05 = append(metrics05, slices.Index(dict, tr.tag), 1)
				attributes = append(attributes, stream(tr.tag), 3, 1.0)
			}
			dict = append(dict, service(number))
			spans04 = append(spans04,
				object{"service", service(number), "span_id", number, "error", failed, "metrics", metrics})
			spans05 = append(spans05,
				[]any{len(dict) - 1, 0, 0, 1, number, 0, 1, 1, failed, object{2, 3}, metrics05, 0})
			spans1 = append(spans1,
				object{9, attributes, 1, stream(service(number)), 4, number, 8, tr.failed})
		}
		v04, v05 = append(v04, spans04), append(v05, spans05)
		v07 = append(v07, object{"priority", tr.priority, "spans", spans04})
		v1 = append(v1, object{4, spans1, 1, tr.priority})
	}
	encoded := map[datadog.Format][]byte{}
	for format, body := range map[datadog.Format]any{
		datadog.FormatV04: v04, datadog.FormatV05: []any{dict, v05},
		datadog.FormatV07: object{"chunks", v07, "env", "e"},
		datadog.FormatV1:  object{3, "go", 11, v1, 7, "e"},
	} {
		var err error
		if encoded[format], err = msgpack.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	return encoded
}

// cut cuts a body. It returns the remaining body, the number of removed traces and spans, and the
// remaining services.
func cut(t *testing.T, format datadog.Format, body []byte) (left []byte, traces, spans int,
	services []string,
) {
	t.Helper()
	d, table := &datadog.Decoder{}, &spantable.Table{}
	if err := d.Decode(format, body, names, table); err != nil {
		t.Fatal(err)
	}
	left, traces, spans = unsampled.Cut(table, d)
	if err := d.Decode(format, left, names, table); err != nil {
		t.Fatalf("%s: what is left: %v", format, err)
	}
	for i := range table.Spans {
		services = append(services, fmt.Sprint(table.Spans[i].ID, table.String(table.Spans[i].Service)))
	}
	if s := &table.Senders[0]; (format == datadog.FormatV07 || format == datadog.FormatV1) &&
		table.String(s.Env) != "e" {
		t.Errorf("%s: the field after the traces is read as %q", format, table.String(s.Env))
	}
	return left, traces, spans, services
}

// TestRemove_KeepsOthersUnchanged: the remaining traces are unchanged, in each format and wherever the
// removed traces were.
func TestRemove_KeepsOthersUnchanged(t *testing.T) {
	kinds := []trace{
		{priority: 1, spans: 2},
		{priority: 0, spans: 3},
		{priority: -1, spans: 1},
		{priority: 0, spans: 2, failed: true},
		{priority: 0, spans: 2, tag: "_dd.span_sampling.mechanism"},
		{priority: -1, spans: 1, tag: "_dd1.sr.eausr"},
		{priority: 2, spans: 1},
	}
	isCut := func(tr trace) bool { return tr.priority <= 0 && !tr.failed && tr.tag == "" }
	for turn := range 40 {
		var traces []trace
		for i := range 1 + turn {
			traces = append(traces, kinds[(i*(turn+3)+turn)%len(kinds)])
		}
		var want []string
		number, goneTraces, goneSpans := 0, 0, 0
		for _, tr := range traces {
			for range tr.spans {
				if number++; !isCut(tr) {
					want = append(want, fmt.Sprint(number, service(number)))
				}
			}
			if isCut(tr) {
				goneTraces++
				goneSpans += tr.spans
			}
		}
		for format, body := range bodies(t, traces) {
			original := bytes.Clone(body)
			left, cutTraces, cutSpans, services := cut(t, format, body)
			if format == datadog.FormatV1 && cutTraces == 0 && goneTraces > 0 {
				if !bytes.Equal(left, original) {
					t.Errorf("%s: nothing was cut, and it is another body", format)
				}
				continue // the body would have become longer
			}
			if cutTraces != goneTraces || cutSpans != goneSpans || !slices.Equal(services, want) {
				t.Errorf("%s: of %v %d traces were cut with %d spans, left are %q", format, traces, cutTraces,
					cutSpans, services)
			}
			if len(left) > len(original) || goneTraces > 0 && len(left) == len(original) {
				t.Errorf("%s: %d of %d bytes are left", format, len(left), len(original))
			}
			if _, again, _, _ := cut(t, format, left); again != 0 {
				t.Errorf("%s: %d more traces were cut", format, again)
			}
		}
	}
}

// TestRemove_NothingIfBodyWouldGrow: nothing is removed if the strings to move are longer than the
// removed traces.
func TestRemove_NothingIfBodyWouldGrow(t *testing.T) {
	body := bodies(t,
		[]trace{{priority: 1, spans: 20}, {priority: 0, spans: 1}, {priority: 1, spans: 1}})[datadog.FormatV1]
	before := bytes.Clone(body)
	if left, traces, spans, _ := cut(t, datadog.FormatV1, body); traces != 0 || spans != 0 ||
		!bytes.Equal(left, before) {
		t.Errorf("%d traces with %d spans were cut, %d of %d bytes are left", traces, spans, len(left),
			len(before))
	}
}

// TestRemove_KeepsStringsOfLaterFields: fields after the list can refer to strings of a removed
// trace, even if it is the last one.
func TestRemove_KeepsStringsOfLaterFields(t *testing.T) {
	var spans []any
	for i := range 10 {
		spans = append(spans, object{1, 2, 4, i + 1, 5, 1 << 40, 6, 1 << 40})
	}
	spans[0] = object{1, "shop", 3, "e", 4, 1}
	body, err := msgpack.Marshal(object{3, "go", 11, []any{object{1, 0, 4, spans}}, 7, 3, 9, "1.4"})
	if err != nil {
		t.Fatal(err)
	}
	if _, traces, _, services := cut(t, datadog.FormatV1, body); traces != 1 || len(services) != 0 {
		t.Errorf("%d traces were cut, left are %q", traces, services)
	}
}

// TestRemove_KeepsTraceWithoutPriority: the agent decides about a trace without a priority, so it
// is not removed.
func TestRemove_KeepsTraceWithoutPriority(t *testing.T) {
	for priority, stays := range map[int]bool{-129: false, -128: true, -127: false, 0: false, 1: true} {
		span := object{1, "s", 4, 1}
		// the traces are the last field of the body
		body, err := msgpack.Marshal(object{7, "e", 11, []any{object{1, priority, 4, []any{span}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, traces, _, _ := cut(t, datadog.FormatV1, body); (traces == 0) != stays {
			t.Errorf("of priority %d %d traces were cut", priority, traces)
		}
	}
	if _, traces, _, _ := cut(t, datadog.FormatV04,
		bodies(t, []trace{{priority: 0, spans: 0}})[datadog.FormatV04]); traces != 0 {
		t.Error("a trace without spans was cut")
	}
}

// TestRemove_ManyTraces covers lists whose header has one, three or five bytes.
func TestRemove_ManyTraces(t *testing.T) {
	for _, n := range []int{15, 16, 0xffff, 0x10000} {
		span, err := msgpack.Marshal(object{
			"span_id", 1, "resource", service(1), "metrics",
			object{"_sampling_priority_v1", 0},
		})
		if err != nil {
			t.Fatal(err)
		}
		kept := bytes.Clone(span)
		kept[len(kept)-1] = 1
		var header bytes.Buffer
		if err := msgpack.NewEncoder(&header).EncodeArrayLen(n); err != nil {
			t.Fatal(err)
		}
		body := header.Bytes()
		for i := range n {
			body = append(body, 0x91)
			if i%2 == 0 {
				body = append(body, kept...)
			} else {
				body = append(body, span...)
			}
		}
		if _, traces, _, services := cut(t, datadog.FormatV04, body); traces != n/2 ||
			len(services) != n-n/2 {
			t.Errorf("of %d traces %d were cut, and %d are left", n, traces, len(services))
		}
	}
}
