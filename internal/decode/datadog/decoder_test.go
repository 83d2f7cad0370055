package datadog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/vmihailenco/msgpack/v5"
)

// names are the names of the tags that every decoder keeps, and of two more.
var names = spantable.NewNames(append(datadog.TraceTags[:], "text.tag", "number.tag"))

// object is a map that is encoded with its pairs in this order.
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

func encode(t testing.TB, v any) []byte {
	t.Helper()
	body, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// decoded returns the table of a payload that must be valid.
func decoded(t *testing.T, format datadog.Format, body []byte) *spantable.Table {
	t.Helper()
	d, table := &datadog.Decoder{}, &spantable.Table{}
	if err := d.Decode(format, body, names, table); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return table
}

func read(t *testing.T, format datadog.Format, v any) error {
	t.Helper()
	return (&datadog.Decoder{}).Decode(format, encode(t, v), names, &spantable.Table{})
}

// shown formats a table as text.
func shown(t *spantable.Table) string {
	var b strings.Builder
	for i := range t.Groups {
		g := &t.Groups[i]
		fmt.Fprintf(&b, "trace %x %x from %q, priority %d %v\n", g.TraceHigh, g.TraceLow, t.String(g.Origin),
			g.Priority, g.HasPriority)
		for j := range t.SpansOf(g) {
			s := &t.SpansOf(g)[j]
			fmt.Fprintf(&b, "  %d of %d: %q %q %q %q %v, %d for %d, %v %v\n", s.ID, s.Parent,
				t.String(s.Service), t.String(s.Name),
				t.String(s.Resource), t.String(s.Type), s.Kind, s.Start, s.Duration, s.Status == spantable.StatusError, s.HasUnknownType)
			for _, tag := range t.TagsOf(s) {
				if tag.HasText() {
					fmt.Fprintf(&b, "    %s: %q\n", names.Name(tag.Label), t.String(tag.Text()))
				} else {
					n, _ := tag.Float()
					fmt.Fprintf(&b, "    %s: %v\n", names.Name(tag.Label), n)
				}
			}
		}
	}
	for i := range t.Senders {
		s := &t.Senders[i]
		for _, text := range []spantable.Text{
			s.Env, s.Version, s.Host, s.Commit, s.Container, s.Lang,
			s.LangVersion, s.TracerVersion, s.ProcessTags,
		} {
			fmt.Fprintf(&b, "%q ", t.String(text))
		}
	}
	return b.String()
}

// TestSpan_EachFormat decodes a span with all fields, labeled tags, and tags that describe
// its trace and its process.
func TestSpan_EachFormat(t *testing.T) {
	const start = uint64(1e18)
	named := object{
		"service", "s", "name", "n", "resource", "r", "trace_id", 5, "span_id", uint64(math.MaxUint64),
		"parent_id", 3, "start", start,
		"duration", 9, "error", 1, "unknown",
		object{"a", []any{1}},
		"meta",
		object{"env", "e", "other", "o", "text.tag", "x", "span.kind", "client"},
		"metrics",
		object{"number.tag", 2.5, "_sampling_priority_v1", 2},
		"type", "w", "span_links",
		[]any{object{"a", 1}, nil},
	}
	const want = "trace 0 5 from \"\", priority 2 true\n" +
		"  18446744073709551615 of 3: \"s\" \"n\" \"r\" \"w\" client, 1000000000000000000 for 9, true false\n" +
		"    env: \"e\"\n    text.tag: \"x\"\n    span.kind: \"client\"\n    number.tag: 2.5\n    _sampling_priority_v1: 2\n"
	dict := []string{
		"", "s", "n", "r", "w", "env", "e", "other", "o", "text.tag", "x", "span.kind", "client",
		"number.tag", "_sampling_priority_v1",
	}
	numbered := []any{
		1, 2, 3, 5, uint64(math.MaxUint64), 3, start, 9, 1,
		object{5, 6, 7, 8, 9, 10, 11, 12},
		object{13, 2.5, 14, 2},
		4,
	}
	for format, test := range map[datadog.Format]struct {
		body any
		want string
	}{
		datadog.FormatV04: {[]any{[]any{named}}, want + `"e" "" "" "" "" "" "" "" "" `},
		datadog.FormatV05: {[]any{dict, []any{[]any{numbered}}}, want + `"e" "" "" "" "" "" "" "" "" `},
		datadog.FormatV07: {object{
			"container_id", "c", "language_name", "l", "language_version", "lv", "tracer_version", "tv",
			"runtime_id", "i", "hostname", "h",
			"app_version", "v", "tags",
			object{"_dd.git.commit.sha", "g", "_dd.tags.process", "p", "other", "o"},
			"chunks",
			[]any{nil, object{
				"priority", 1, "origin", "syn", "spans",
				[]any{nil, named},
				"tags",
				object{"_dd.git.commit.sha", "no"},
			}},
		}, strings.Replace(want, `from ""`, `from "syn"`, 1) + `"e" "v" "h" "g" "c" "l" "lv" "tv" "p" `},
		datadog.FormatV1: {object{
			2, "c", 3, "l", 4, "lv", 5, "tv", 6, "i", 7, "e", 8, "h", 9, "v", 10,
			[]any{"_dd.git.commit.sha", 1, "g", "_dd.tags.process", 1, "p"},
			11,
			[]any{object{
				1, 2, 2, "syn", 6,
				[]byte("\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05"), 4,
				[]any{object{
					1, "s", 2, "n", 3, "r", 4, uint64(math.MaxUint64), 5, 3, 6, start, 7, 9, 8, true, 12,
					[]any{object{1, 1, 2, "event", 3, []any{"a", 1, "b"}}},
					11,
					[]any{object{1, []byte("id"), 2, 4, 3, []any{}, 4, "state", 5, 1}},
					13, 7, 99,
					object{"deep", []any{"x"}},
					9,
					[]any{
						7, 1, 7, "text.tag", 1, "x", "number.tag", 3, 2.5, "other", 7,
						[]any{"a", 6, []any{1, "z"}},
					},
					10, "w", 16, 3,
				}},
			}},
		}, "trace 7 5 from \"syn\", priority 2 true\n" +
			"  18446744073709551615 of 3: \"s\" \"n\" \"r\" \"w\" client, 1000000000000000000 for 9, true false\n" +
			"    text.tag: \"x\"\n    number.tag: 2.5\n" + `"e" "v" "h" "g" "c" "l" "lv" "tv" "p" `},
	} {
		body := encode(t, test.body)
		if got := shown(decoded(t, format, body)); got != test.want {
			t.Errorf("%s is read as\n%s\nwant\n%s", format, got, test.want)
		}
		for cut := range body {
			table := &spantable.Table{}
			if err := (&datadog.Decoder{}).Decode(format, body[:cut], names, table); !errors.Is(err,
				datadog.ErrUnparsable) {
				t.Errorf("%s: %d of %d bytes: %v", format, cut, len(body), err)
			}
		}
	}
}

// TestPriority_RootTakesPrecedence checks that the priority of the root span takes precedence over that
// of later spans. In a trace without a root, the last priority counts.
func TestPriority_RootTakesPrecedence(t *testing.T) {
	spanOf := func(parent int, priority any) object {
		o := object{"span_id", 1, "parent_id", parent, "meta", object{}, "metrics", object{}}
		if priority != nil {
			o[len(o)-1] = object{"_sampling_priority_v1", priority}
		}
		return o
	}
	for _, test := range []struct {
		spans []any
		want  int32
	}{
		{[]any{spanOf(0, 1), spanOf(1, -1)}, 1},
		{[]any{spanOf(1, 1), spanOf(1, -1)}, -1},
		{[]any{spanOf(1, -1), spanOf(0, 1)}, 1},
		{[]any{spanOf(0, nil), spanOf(1, 2)}, 2},
	} {
		for format, body := range map[datadog.Format]any{
			datadog.FormatV04: []any{test.spans},
			datadog.FormatV07: object{"chunks", []any{object{"spans", test.spans}}},
		} {
			if g := decoded(t, format, encode(t, body)).Groups[0]; g.Priority != test.want || !g.HasPriority {
				t.Errorf("%s: the priority of %v is %d", format, test.spans, g.Priority)
			}
		}
	}
}

// TestProcess_Precedence checks the precedence of values that describe the process: fields of the
// payload first, and then tags of the last span in v0.4, or of the first span in v0.7.
func TestProcess_Precedence(t *testing.T) {
	say := func(env string) object {
		return object{"span_id", 1, "meta", object{"env", env, "_dd.git.commit.sha", env}}
	}
	traces := []any{[]any{say("a"), say("b")}, []any{say("c"), say("")}}
	if s := decoded(t, datadog.FormatV04, encode(t, traces)); s.String(s.Senders[0].Env) != "b" {
		t.Errorf("in v0.4 it is %q", s.String(s.Senders[0].Env))
	}
	chunks := []any{object{"spans", traces[0]}, object{"spans", traces[1]}}
	for _, env := range []string{"", "payload's"} {
		body := object{"chunks", chunks, "tags", object{"_dd.git.commit.sha", "payload's"}, "env", env}
		s := decoded(t, datadog.FormatV07, encode(t, body))
		want := env
		if want == "" {
			want = "c"
		}
		if got := s.String(s.Senders[0].Env); got != want || s.String(s.Senders[0].Commit) != "c" {
			t.Errorf("in v0.7 it is %q of %q", got, s.String(s.Senders[0].Commit))
		}
	}
}

// TestPayload_InvalidForFormat decodes payloads that are valid msgpack but not valid in their
// format.
func TestPayload_InvalidForFormat(t *testing.T) {
	span := object{1, "s", 4, 1}
	for what, test := range map[string]struct {
		format datadog.Format
		body   any
		reads  bool
	}{
		"strings ahead":            {datadog.FormatV1, object{1, []any{"go"}, 3, ""}, true},
		"strings ahead of nothing": {datadog.FormatV1, object{3, "", 1, []any{"go"}}, false},
		"a string ahead twice":     {datadog.FormatV1, object{1, []any{"go", "go"}}, false},
		"one list of traces":       {datadog.FormatV1, object{11, []any{}, 3, ""}, true},
		"two lists of traces":      {datadog.FormatV1, object{11, []any{}, 11, []any{}}, false},
		"two lists of chunks": {
			datadog.FormatV07,
			object{"chunks", []any{}, "chunks", []any{}},
			false,
		},
		"a string by a number it has not": {datadog.FormatV1, object{3, 1}, false},
		"an attribute without a value":    {datadog.FormatV1, object{10, []any{"a", 1}}, false},
		"a process tag that is a number": {
			datadog.FormatV1,
			object{10, []any{"_dd.tags.process", 4, 1}},
			false,
		},
		"a list of pairs": {
			datadog.FormatV1,
			object{10, []any{"a", 6, []any{1, "x", 2, true}}},
			true,
		},
		"a list of halves":                  {datadog.FormatV1, object{10, []any{"a", 6, []any{1}}}, false},
		"a kind of value that there is not": {datadog.FormatV1, object{10, []any{"a", 8, 1}}, false},
		"a span of v1.0": {
			datadog.FormatV1,
			object{11, []any{object{4, []any{span}}}},
			true,
		},
		"a priority of more than 32 bits": {
			datadog.FormatV1,
			object{11, []any{object{1, int64(1 << 32)}}},
			false,
		},
		"a span of eleven": {
			datadog.FormatV05,
			[]any{[]string{""}, []any{[]any{[]any{0, 0, 0, 1, 1, 0, 1, 1, 0, object{}, object{}}}}},
			false,
		},
		"a span of thirteen": {
			datadog.FormatV05,
			[]any{[]string{""}, []any{[]any{[]any{0, 0, 0, 1, 1, 0, 1, 1, 0, object{}, object{}, 0, 0}}}},
			false,
		},
		"a name twice in the dictionary": {
			datadog.FormatV05,
			[]any{[]string{"", "env", "env"}, []any{}},
			false,
		},
		"another name twice": {
			datadog.FormatV05,
			[]any{[]string{"", "else", "else"}, []any{}},
			true,
		},
		"an error of less than nothing": {datadog.FormatV04, []any{[]any{object{"error", -1}}}, false},
		"an error of more than 32 bits": {
			datadog.FormatV04,
			[]any{[]any{object{"error", int64(1) << 31}}},
			false,
		},
		"tags in their order": {
			datadog.FormatV07,
			object{"chunks", []any{object{"spans", []any{object{"meta", object{}, "metrics", object{}}}}}},
			true,
		},
		"tags in another order": {
			datadog.FormatV07,
			object{"chunks", []any{object{"spans", []any{object{"metrics", object{}, "meta", object{}}}}}},
			false,
		},
		"tags in another order in v0.4": {
			datadog.FormatV04,
			[]any{[]any{object{"metrics", object{}, "meta", nil}}},
			true,
		},
		"a field without a name": {datadog.FormatV04, []any{[]any{object{nil, 1}}}, false},
		"a tag as long as may be": {
			datadog.FormatV04,
			[]any{[]any{object{"meta", object{"env", strings.Repeat("x", 16<<10)}}}},
			true,
		},
		"a longer tag": {
			datadog.FormatV04,
			[]any{[]any{object{"meta", object{"env", strings.Repeat("x", 16<<10+1)}}}},
			false,
		},
	} {
		if err := read(t, test.format, test.body); (err == nil) != test.reads {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDecoder_IndependentOfEarlierBodies checks that earlier payloads don't affect the result, and that a decoder
// holds no reference to a payload after Release.
func TestDecoder_IndependentOfEarlierBodies(t *testing.T) {
	d, table := &datadog.Decoder{}, &spantable.Table{}
	first := encode(t,
		object{1, []any{"a", "b"}, 3, 1, 11, []any{object{2, "c", 4, []any{object{1, "b", 4, 9}}}}})
	second := encode(t, object{3, "x", 11, []any{object{4, []any{object{1, 1, 4, 8}}}}})
	want := shown(decoded(t, datadog.FormatV1, second))
	for range 2 {
		for _, body := range [][]byte{first, second} {
			if err := d.Decode(datadog.FormatV1, body, names, table); err != nil {
				t.Fatal(err)
			}
		}
		if got := shown(table); got != want || d.Format() != datadog.FormatV1 || len(d.Strings()) != 2 {
			t.Errorf("%q, want %q", got, want)
		}
		d.Release()
	}
}

// TestTraces_Positions checks the positions of the list of traces, and that its traces are adjacent.
func TestTraces_Positions(t *testing.T) {
	traces := []any{[]any{object{"span_id", 1}}, []any{}, []any{object{"span_id", 2}, object{"span_id", 3}}}
	for format, body := range map[datadog.Format]any{
		datadog.FormatV04: traces,
		datadog.FormatV07: object{
			"env", "e", "chunks",
			[]any{object{"spans", traces[0]}, object{"spans", traces[2]}},
			"x", 1,
		},
	} {
		d, table, b := &datadog.Decoder{}, &spantable.Table{}, encode(t, body)
		if err := d.Decode(format, b, names, table); err != nil {
			t.Fatal(err)
		}
		list, at := d.TraceList(), d.TraceList().TracesStart
		for i := range table.Groups {
			g := &table.Groups[i]
			if int(g.BodyStart) != at {
				t.Errorf("%s: trace %d begins at %d, not %d", format, i, g.BodyStart, at)
			}
			if at = int(g.BodyEnd); format == datadog.FormatV04 &&
				!bytes.Equal(b[g.BodyStart:g.BodyEnd], encode(t, traces[i])) {
				t.Errorf("trace %d is %x", i, b[g.BodyStart:g.BodyEnd])
			}
		}
		if at != list.TracesEnd || list.HeaderStart >= list.TracesStart {
			t.Errorf("%s: the list %+v ends at %d", format, list, at)
		}
	}
}

// FuzzDecode checks that no input causes a panic or an invalid reference in the table.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), encode(f, []any{[]any{object{"service", "s", "meta", object{"env", "e"}}}}))
	f.Add(uint8(1),
		encode(f, []any{
			[]string{"", "s"},
			[]any{[]any{[]any{1, 0, 0, 1, 1, 0, 1, 1, 0, object{}, object{}, 0}}},
		}))
	f.Add(uint8(2), encode(f, object{"chunks", []any{object{"spans", []any{object{"span_id", 1}}}}}))
	f.Add(uint8(3), encode(f, object{11, []any{object{4, []any{object{1, "s", 9, []any{"env", 1, "e"}}}}}}))
	d, table := &datadog.Decoder{}, &spantable.Table{}
	f.Fuzz(func(t *testing.T, format uint8, body []byte) {
		err := d.Decode(datadog.Format(format%4), body, names, table)
		fresh := &spantable.Table{}
		if other := (&datadog.Decoder{}).Decode(datadog.Format(format%4), body, names,
			fresh); !errors.Is(other, err) {
			t.Fatalf("%v, and where nothing was met before %v", err, other)
		}
		if err == nil && shown(table) != shown(fresh) {
			t.Fatalf("%q, and where nothing was met before %q", shown(table), shown(fresh))
		}
	})
}

// TestStrings_AreBounded checks the limit on strings in formats that refer to strings by index.
func TestStrings_AreBounded(t *testing.T) {
	var list []string
	for i := range 1 << 16 {
		list = append(list, fmt.Sprintf("%03x", i&0xfff)+string(rune('a'+i>>12)))
	}
	for format, body := range map[datadog.Format]any{
		datadog.FormatV05: []any{list, []any{}}, datadog.FormatV1: object{1, list},
	} {
		d := &datadog.Decoder{}
		err := d.Decode(format, encode(t, body), names, &spantable.Table{})
		if most := spantable.LimitsOf(len(encode(t, body)), 8).Strings; !errors.Is(err,
			spantable.ErrTooMuch) || len(d.Strings()) > most {
			t.Errorf("%s: %v, and %d strings are held", format, err, len(d.Strings()))
		}
	}
}

// TestTraceID_FromOwnSpans checks that a trace gets its ID from its own spans
// only.
func TestTraceID_FromOwnSpans(t *testing.T) {
	body := []any{[]any{object{"trace_id", 5}}, []any{object{"span_id", 1}}}
	if table := decoded(t, datadog.FormatV04, encode(t, body)); table.Groups[0].TraceLow != 5 ||
		table.Groups[1].TraceLow != 0 {
		t.Errorf("they are of the traces %d and %d", table.Groups[0].TraceLow, table.Groups[1].TraceLow)
	}
}
