package otlp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
	"google.golang.org/protobuf/encoding/protowire"
)

// names are the names of the attributes to keep.
var names = spantable.NewNames([]string{
	"", "peer.service", "db.namespace", "db.name", "service.name",
	"host.name",
})

const (
	peerService spantable.Label = iota + 1
	dbNamespace
	_
	serviceName
)

// decoded returns a request whose body must be valid.
func decoded(t testing.TB, body []byte) *otlp.Request {
	t.Helper()
	r := &otlp.Request{}
	if err := r.Decode(body, names, names); err != nil {
		t.Fatal(err)
	}
	return r
}

// saidOf formats tags as text.
func saidOf(r *otlp.Request, tags []spantable.Tag) (all []string) {
	for i := range tags {
		if value := r.AppendValue(nil, &tags[i]); len(value) > 0 {
			all = append(all, fmt.Sprintf("%d:%s", tags[i].Label, value))
		}
	}
	return all
}

// TestRequest_Invalid inserts invalid messages into an otherwise valid request.
func TestRequest_Invalid(t *testing.T) {
	r := &otlp.Request{}
	read := func(s otlptest.Span, more ...byte) error {
		return r.Decode(append(otlptest.SDKRequest(s), more...), names, names)
	}
	for name, more := range map[string][]byte{
		"a tag of two bytes":                 {0x80},
		"a field 0":                          {0x02, 0},
		"a field beyond all":                 {0xfa, 0xff, 0xff, 0xff, 0x1f, 0},
		"a way of writing that there is not": {0x0f},
		"a group without an end":             {0x0b, 8, 1},
		"a group with another's end":         {0x0b, 0x14},
		"one in it with another's":           {0x0b, 0x13, 0x1c, 0x0c},
		"a group with a field that is cut":   {0x0b, 0x0a, 5, 0x0c},
		"the end of a group":                 {0x0c},
		"a number without end":               {0x08, 0x80},
		"a number of eleven bytes":           append([]byte{8}, bytes.Repeat([]byte{0x80}, 10)...),
		"a message that is cut":              {0x0a, 5, 0},
		"a length beyond all":                append([]byte{0x0a}, protowire.AppendVarint(nil, 1<<63)...),
		"eight bytes that are seven":         {0x09, 0, 0, 0, 0, 0, 0, 0},
		"four bytes that are three":          {0x0d, 0, 0, 0},
		"a resource that is cut":             {0x0a, 2, 0x0a, 1},
		"a resource in two parts": otlptest.Field(nil, 1,
			bytes.Repeat(otlptest.Field(nil, 1, otlptest.Field(nil, 1, nil)), 2)),
		"attributes of a resource": otlptest.Field(nil, 1,
			otlptest.Field(nil, 1, otlptest.Field(nil, 1, []byte{0x0a, 5}))),
		"an entity": otlptest.Field(nil, 1,
			otlptest.Field(nil, 1, otlptest.Field(nil, 3, []byte{0x0a, 5}))),
		"a list of spans": otlptest.Field(nil, 1, otlptest.Field(nil, 2, []byte{0x12, 5})),
		"a scope": otlptest.Field(nil, 1,
			otlptest.Field(nil, 2, otlptest.Field(nil, 1, []byte{0x0a, 5}))),
		"a scope in two parts": otlptest.Field(nil, 1,
			otlptest.Field(nil, 2, bytes.Repeat(otlptest.Field(nil, 1, otlptest.Field(nil, 1, nil)), 2))),
		"a scope's attribute": otlptest.Field(nil, 1,
			otlptest.Field(nil, 2, otlptest.Field(nil, 1, otlptest.Field(nil, 3, []byte{0x0a, 5})))),
	} {
		if err := read(otlptest.Span{}, more...); !errors.Is(err, otlp.ErrUnparsable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, more := range map[string][]byte{
		"a trace's id of 15 bytes": otlptest.Field(nil, 1, make([]byte, 15)),
		"a span's of 7":            otlptest.Field(nil, 2, make([]byte, 7)),
		"a parent's of 9":          otlptest.Field(nil, 4, make([]byte, 9)),
		"a value that is shorter than it says": otlptest.Field(nil, 9,
			[]byte{0x0a, 1, 'x', 0x12, 3, 0x0a, 3, 'a', 'b', 'c'}),
		"a field":              {0x0a, 5},
		"an attribute":         otlptest.Field(nil, 9, []byte{0x0a, 5}),
		"a value":              otlptest.Field(nil, 9, otlptest.Field(nil, 2, []byte{0x0a, 5})),
		"a status":             otlptest.Field(nil, 15, []byte{0x18}),
		"an event":             otlptest.Field(nil, 11, []byte{0x0a, 5}),
		"a link":               otlptest.Field(nil, 13, []byte{0x0a, 5}),
		"an event's attribute": otlptest.Field(nil, 11, otlptest.Field(nil, 3, []byte{0x0a, 5})),
		"a link's":             otlptest.Field(nil, 13, otlptest.Field(nil, 4, []byte{0x0a, 5})),
		"a list in a value": otlptest.Field(nil, 9,
			otlptest.Field(nil, 2, otlptest.Field(nil, 5, otlptest.Field(nil, 1, []byte{0x0a, 5})))),
		"pairs in a value": otlptest.Field(nil, 9,
			otlptest.Field(nil, 2, otlptest.Field(nil, 6, otlptest.Field(nil, 1, []byte{0x0a, 5})))),
	} {
		if err := read(otlptest.Span{More: more}); !errors.Is(err, otlp.ErrUnparsable) {
			t.Errorf("%s in a span: %v", name, err)
		}
	}
	for name, more := range map[string][]byte{
		"nothing":                 nil,
		"an unknown field":        otlptest.Field(nil, 1000, []byte{0xff}),
		"a name that is a number": {0x28, 5},
		"ids that are not there": otlptest.Field(otlptest.Field(otlptest.Field(nil, 1, nil), 2, nil),
			4, nil),
		"a group":                       {0x0b, 8, 1, 0x13, 0x14, 0x0c},
		"a span's name that is a group": {0x2b, 0x2c},
		"an attribute of nothing":       otlptest.Field(nil, 9, nil),
		"a long number":                 {0x30, 0x82, 0x80, 0},
		"text that is no UTF-8":         otlptest.Field(nil, 5, []byte{0xff}),
	} {
		if err := read(otlptest.Span{More: more}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNesting_DeepIsSkipped checks that deeply nested lists, key-value lists and groups are
// skipped, while the rest of the request is decoded. Invalid messages are found up to MaxDepth.
func TestNesting_DeepIsSkipped(t *testing.T) {
	list := func(inner []byte) []byte { return otlptest.Field(nil, 5, otlptest.Field(nil, 1, inner)) }
	pairs := func(inner []byte) []byte {
		return otlptest.Field(nil, 6, otlptest.Field(nil, 1, otlptest.Field(nil, 2, inner)))
	}
	group := func(inner []byte) []byte { return append(append([]byte{0x4b}, inner...), 0x4c) }
	for what, in := range map[string]func([]byte) []byte{"lists": list, "pairs": pairs, "groups": group} {
		for _, depth := range []int{1, 20, 50, 1000, 5000} {
			for _, core := range [][]byte{nil, {0x0a, 5}} {
				value := core
				for range depth {
					value = in(value)
				}
				pair := otlptest.Field(otlptest.Field(nil, 1, []byte("peer.service")), 2, value)
				isSound := core == nil || what != "groups" && depth > otlp.MaxDepth/2
				for where, more := range map[string][]byte{
					"an attribute": otlptest.Field(nil, 9, pair),
					"an event":     otlptest.Field(nil, 11, otlptest.Field(nil, 3, pair)),
					"a link":       otlptest.Field(nil, 13, otlptest.Field(nil, 4, pair)),
				} {
					r := &otlp.Request{}
					err := r.Decode(otlptest.SDKRequest(otlptest.Span{More: more}, otlptest.Span{Name: "next"}),
						names, names)
					if (err == nil) != isSound || err == nil && len(r.Spans) != 2 {
						t.Errorf("%d %s in %s around %x: %v", depth, what, where, core, err)
					}
				}
			}
		}
	}
}

// TestAttributes_EachEncoding checks attributes that are not in the most common encoding: the
// value before the key, a long key or text, repeated keys and values.
func TestAttributes_EachEncoding(t *testing.T) {
	key, value := func(s string) []byte {
		return otlptest.Field(nil, 1, []byte(s))
	}, func(b []byte) []byte { return otlptest.Field(nil, 2, b) }
	text := func(s string) []byte { return otlptest.Field(nil, 1, []byte(s)) }
	long := strings.Repeat("x", 150)
	for name, test := range map[string]struct {
		attribute []byte
		want      string
	}{
		"as it is":        {append(key("peer.service"), value(text("a"))...), "a"},
		"the value first": {append(value(text("a")), key("peer.service")...), "a"},
		"a long value":    {append(key("peer.service"), value(text(long))...), long},
		"names twice": {
			bytes.Join([][]byte{key("x"), value(text("a")), key("peer.service")}, nil),
			"a",
		},
		"values twice": {bytes.Join([][]byte{key("peer.service"), value(text("a")), value(text("b"))},
			nil), "b"},
		"a value and none": {
			bytes.Join([][]byte{key("peer.service"), value(text("a")), value(nil)}, nil),
			"a",
		},
		"two in one": {append(key("peer.service"), value(append(text("a"), text("b")...))...), "b"},
		"a number, a text": {
			append(key("peer.service"), value(append([]byte{0x18, 5}, text("b")...))...),
			"b",
		},
		"a text, a number": {append(key("peer.service"), value(append(text("b"), 0x18, 0x85, 0))...), "5"},
		"a list":           {append(key("peer.service"), value(append(text("b"), 0x2a, 0))...), ""},
		"an index":         {append(key("peer.service"), value(append(text("b"), 0x40, 0))...), ""},
		"a yes of 2":       {append(key("peer.service"), value([]byte{0x10, 2})...), "true"},
		"with more": {
			bytes.Join([][]byte{key("peer.service"), value(text("a")), {0x18, 1}}, nil),
			"a",
		},
		"a name and no end": {append(key("peer.service"), value(append(text("a"), 0x98, 6, 1))...), "a"},
	} {
		for _, around := range [][]byte{
			nil,
			otlptest.Field(nil, 9, append(key("db.namespace"), value(text("n"))...)),
		} {
			more := bytes.Join([][]byte{around, otlptest.Field(nil, 9, test.attribute), around}, nil)
			r := decoded(t, otlptest.SDKRequest(otlptest.Span{More: more}))
			got, want := saidOf(r, r.TagsOf(&r.Spans[0])), []string(nil)
			if test.want != "" {
				want = append(want, fmt.Sprintf("%d:%s", peerService, test.want))
			}
			if around != nil {
				namespace := fmt.Sprintf("%d:n", dbNamespace)
				want = append(append([]string{namespace}, want...), namespace)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// TestNumbers_AsInJSON checks the format of numbers as text, which OpenTelemetry
// specifies.
func TestNumbers_AsInJSON(t *testing.T) {
	written := func(n float64) string {
		tag := spantable.Tag{Type: spantable.TypeNumber, Bits: math.Float64bits(n)}
		return string((&otlp.Request{}).AppendValue(nil, &tag))
	}
	for _, n := range []float64{
		0, 1, -1.5, 1e20, 1e21, -1e21, 1e-6, 9.9e-7, 1e-7, 1e-10, 1.5e300, 5e-324,
		1 << 53, 0.1,
	} {
		want, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if got := written(n); got != string(want) {
			t.Errorf("%v is written as %s, want %s", n, got, want)
		}
	}
	if got := written(math.NaN()) + written(math.Inf(-1)); got != "NaN-Inf" {
		t.Errorf("%s", got)
	}
}

// TestResource_AfterItsSpans checks a ResourceSpans message in which the resource follows
// the spans.
func TestResource_AfterItsSpans(t *testing.T) {
	spans := otlptest.Field(nil, 2, otlptest.Field(nil, 2, otlptest.Span{Name: "x"}.Encode()))
	resource := otlptest.Field(nil, 1,
		otlptest.Field(nil, 1, otlptest.Attribute{"service.name", "shop"}.Encode()))
	for _, content := range [][]byte{
		append(slices.Clone(resource), spans...),
		append(slices.Clone(spans), resource...),
	} {
		r := decoded(t, otlptest.Field(nil, 1, content))
		of := &r.Resources[0]
		if got := saidOf(r, r.Tags[of.TagStart:of.TagEnd]); !slices.Equal(got,
			[]string{fmt.Sprintf("%d:shop", serviceName)}) || len(r.Spans) != 1 {
			t.Errorf("%q", got)
		}
	}
}

// TestRequest_WithinItsMemory checks that decoding takes no more memory than Bytes returns, for
// several kinds of large requests.
func TestRequest_WithinItsMemory(t *testing.T) {
	for _, length := range []int{64 << 10, 1 << 20, 16 << 20} {
		for name, body := range otlptest.CostlyBodies(length) {
			r := &otlp.Request{}
			before := otlptest.MemoryInUse()
			err := r.Decode(body, names, names)
			held := otlptest.MemoryInUse() - before
			t.Logf("%d KiB of %s: %d KiB held, %d promised: %v", len(body)>>10, name, held>>10,
				otlp.MaxMemory(len(body), 0)>>10, err)
			if held > otlp.MaxMemory(len(body), 0) {
				t.Errorf("%d bytes of %s made it hold %d", len(body), name, held)
			}
			if err != nil && !errors.Is(err, spantable.ErrTooMuch) {
				t.Error(err)
			}
			runtime.KeepAlive(r)
			runtime.KeepAlive(body)
		}
	}
}

// TestLimits_SpansPerBody checks that a request can contain exactly as many spans as its limit,
// regardless of earlier requests.
func TestLimits_SpansPerBody(t *testing.T) {
	r := &otlp.Request{}
	spansOf := func(n int, span []byte) []byte {
		return otlptest.Field(nil, 1, otlptest.Field(nil, 2, bytes.Repeat(otlptest.Field(nil, 2, span), n)))
	}
	within := 0
	for _, spans := range rand.New(rand.NewPCG(7, 8)).Perm(100) {
		spans += 4220
		body := spansOf(spans, nil)
		err := r.Decode(body, names, names)
		isWithin := spans <= spantable.MaxSpans(len(body))
		if (err == nil) != isWithin || !isWithin && !errors.Is(err, spantable.ErrTooMuch) {
			t.Errorf("%d spans of %d bytes, at most %d: %v", spans, len(body), spantable.MaxSpans(len(body)),
				err)
		}
		if isWithin {
			within++
		}
	}
	if within == 0 || within == 100 {
		t.Errorf("%d of 100 bodies are within their limit", within)
	}
	bodies, tag := otlptest.CostlyBodies(1<<20), otlptest.Attribute{"db.name", ""}.Encode()
	host := otlptest.Field(nil, 1, otlptest.Attribute{"host.name", ""}.Encode())
	bodies["tags of spans"] = spansOf(6000, bytes.Repeat(otlptest.Field(nil, 9, tag), 3))
	bodies["tags of a resource"] = otlptest.Field(nil, 1, otlptest.Field(nil, 1, bytes.Repeat(host, 20000)))
	for _, name := range []string{"tags", "tags of spans", "tags of a resource", "resources", "scopes"} {
		if err := r.Decode(bodies[name], names, names); !errors.Is(err, spantable.ErrTooMuch) {
			t.Errorf("more %s than there may be were read: %v", name, err)
		}
	}
}

// TestPositions_ContainMessages checks that the position of each span, scope and resource contains
// its message.
func TestPositions_ContainMessages(t *testing.T) {
	resource := otlptest.Field(nil, 1, []byte{})
	spans := []otlptest.Span{
		{Trace: 3, ID: 1, State: "a=b", Name: "x"},
		{Trace: 4, ID: 2, Parent: 1, Name: "y"},
	}
	first, second := spans[0].Encode(), spans[1].Encode()
	scope := otlptest.Field(otlptest.Field(nil, 2, first), 2, second)
	body := otlptest.Field(nil, 1, append(otlptest.Field(nil, 2, scope), resource...))
	r := decoded(t, body)
	for i, want := range [][]byte{first, second} {
		p := &r.Extras[i]
		if !bytes.Equal(body[p.MessageStart:p.FieldEnd], want) ||
			!bytes.Equal(body[p.FieldStart:p.FieldEnd], otlptest.Field(nil, 2, want)) {
			t.Errorf("span %d lies at %+v", i, p)
		}
	}
	if p := &r.Extras[0]; r.String(p.State) != "a=b" ||
		!bytes.HasPrefix(body[p.StateFieldStart:], otlptest.Field(nil, 3, []byte("a=b"))) {
		t.Errorf("its tracestate lies at %+v", p)
	}
	if p := &r.Extras[1]; p.StateFieldStart != 0 || p.TraceHigh != 0x0123456789abcdef || p.TraceLow != 4 ||
		r.Spans[1].ID != 2 || r.Spans[1].Parent != 1 {
		t.Errorf("%+v %+v", p, r.Spans[1])
	}
	of := &r.Resources[0]
	first2, last := r.SpansOf(of)
	if of.FieldStart != 0 || of.FieldEnd != len(body) || of.MessageField != len(body)-2 || first2 != 0 || last != 2 ||
		!r.HasSpans(of) {
		t.Errorf("the resource lies at %+v", of)
	}
	if s := &r.Scopes[0]; !bytes.Equal(body[s.MessageStart:s.FieldEnd], scope) || s.ListStart != 0 || s.ListEnd != 2 {
		t.Errorf("the scope lies at %+v", s)
	}
}

// TestRelease_HoldsNothing checks that Release drops the last body, and the memory for
// unusually large requests.
func TestRelease_HoldsNothing(t *testing.T) {
	r := &otlp.Request{}
	for _, traces := range []int{100, 6000} {
		last := func() weak.Pointer[byte] {
			body := slices.Clone(otlptest.Web(traces))
			if err := r.Decode(body, names, names); err != nil {
				t.Fatal(err)
			}
			return weak.Make(&body[0])
		}()
		r.Release()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("%d traces: the last body is still held", traces)
		}
	}
	if cap(r.Tags) > 1<<16 {
		t.Errorf("%d tags are kept", cap(r.Tags))
	}
}

// TestRequest_AllocatesNothing checks that decoding does not allocate after the first request.
func TestRequest_AllocatesNothing(t *testing.T) {
	body, r := otlptest.Web(100), &otlp.Request{}
	round := func() {
		if err := r.Decode(body, names, names); err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
	for range 3 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%v allocations a body of 400 spans", n)
	}
}

// FuzzDecode checks that all positions are within the body, and in order, for any input.
func FuzzDecode(f *testing.F) {
	f.Add(otlptest.Web(2))
	f.Add(otlptest.SDKRequest(otlptest.Span{
		State:      "ot=th:8",
		Attributes: []otlptest.Attribute{{"db.name", 2.5}, {"peer.service", true}},
	}))
	r := &otlp.Request{}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r.Decode(body, names, names) != nil {
			return
		}
		if len(r.Extras) != len(r.Spans) {
			t.Fatalf("%d places of %d spans", len(r.Extras), len(r.Spans))
		}
		end := 0
		for i := range r.Resources {
			of := &r.Resources[i]
			if of.FieldStart < end || of.MessageStart < of.FieldStart || of.FieldEnd < of.MessageStart || of.FieldEnd > len(body) {
				t.Fatalf("resource %d is at %+v after %d", i, of, end)
			}
			inner := of.MessageStart
			for _, s := range r.Scopes[of.ListStart:of.ListEnd] {
				if s.FieldStart < inner || s.MessageStart < s.FieldStart || s.FieldEnd < s.MessageStart || s.FieldEnd > of.FieldEnd {
					t.Fatalf("a scope of %d is at %+v after %d", i, s, inner)
				}
				at := uint32(s.MessageStart)
				for _, p := range r.Extras[s.ListStart:s.ListEnd] {
					if p.FieldStart < at || p.MessageStart < p.FieldStart || p.FieldEnd < p.MessageStart || p.FieldEnd > uint32(s.FieldEnd) ||
						int(p.Resource) != i {
						t.Fatalf("a span of %d is at %+v after %d", i, p, at)
					}
					at = p.FieldEnd
				}
				inner = s.FieldEnd
			}
			end = of.FieldEnd
		}
		for i := range r.Tags {
			_ = r.AppendValue(nil, &r.Tags[i])
		}
	})
}
