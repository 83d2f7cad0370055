package datadog_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// spansV05 returns a body of one trace with n equal spans, whose dictionary contains each string
// once.
func spansV05(t testing.TB, spans int, service, resource string, meta map[string]string) []byte {
	t.Helper()
	dict := []string{"", service, "op", resource}
	tags := map[int]int{}
	for k, v := range meta {
		tags[len(dict)] = len(dict) + 1
		dict = append(dict, k, v)
	}
	trace := make([]any, spans)
	for i := range trace {
		trace[i] = []any{1, 2, 3, 1, i + 1, 0, int64(1e18), 1, 0, tags, map[int]float64{}, 0}
	}
	return encode(t, []any{dict, []any{trace}})
}

// TestLimits_StringUsedOften: a body that refers to a long string from each of its spans must not
// exceed the limits; it is left to the agent.
func TestLimits_StringUsedOften(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, body := range map[string][]byte{
		"resource":       spansV05(t, 1<<12, "shop", long, nil),
		"service":        spansV05(t, 1<<12, long, "GET /", nil),
		"broken service": spansV05(t, 1<<12, long+"\xff", "GET /", nil),
		"a number's text": spansV05(t, 1<<12, "shop", "GET /",
			map[string]string{"_dd.measured": strings.Repeat("1", 20_000)}),
	} {
		c := datadog.NewCounter()
		if err := c.Count(decode.FormatV05, body, "go", false, policyOf(t)); err == nil {
			t.Errorf("%s: it was counted", name)
		}
	}
}

// TestLimits_LongTags: tags that the agent would cut, and lists that would need more memory than their
// length, are left to the agent.
func TestLimits_LongTags(t *testing.T) {
	for _, value := range []string{strings.Repeat(",", 1<<20), strings.Repeat("x", (16<<10)+1)} {
		body := spansV05(t, 1, "shop", "GET /", map[string]string{"span.kind": "client", "out.host": value})
		if datadog.NewCounter().Count(decode.FormatV05, body, "go", false, policyOf(t)) == nil {
			t.Errorf("a tag of %d bytes was counted", len(value))
		}
	}
	body := spansV05(t, 1, "shop", "GET /",
		map[string]string{"span.kind": "client", "out.host": strings.Repeat("x", (16 << 10))})
	if err := datadog.NewCounter().Count(decode.FormatV05, body, "go", false, policyOf(t)); err != nil {
		t.Error(err)
	}
}

// TestLimits_ManyBaseServices: each base service needs a publisher, so a body with more of them than a
// process usually has is left to the agent.
func TestLimits_ManyBaseServices(t *testing.T) {
	body := func(n int) []byte {
		var traces []any
		for i := range n {
			traces = append(traces, []any{map[string]any{
				"service":  "shop",
				"name":     "op",
				"resource": "r",
				"span_id":  1,
				"start":    int64(1e18),
				"duration": 1,
				"meta":     map[string]string{"_dd.base_service": fmt.Sprint("base-", i)},
			}})
		}
		return encode(t, traces)
	}
	c := datadog.NewCounter()
	if err := c.Count(decode.FormatV04, body(datadog.MaxBaseServices), "go", false, policyOf(t)); err != nil {
		t.Error(err)
	}
	if err := c.Count(decode.FormatV04, body(datadog.MaxBaseServices+1), "go", false, policyOf(t)); err == nil {
		t.Error("they were counted")
	}
}

// TestLimits_EmptyTracesAndUnusedStrings: traces without spans and unused strings take one or two bytes of a body, and
// many times as much memory.
func TestLimits_EmptyTracesAndUnusedStrings(t *testing.T) {
	strings := []byte{0x92, 0xdd, 0, 0x20, 0, 0}
	for i := range 1 << 21 {
		strings = append(strings, 0xa3, byte(i), byte(i>>8), byte(i>>16))
	}
	streamed := append([]byte{0x81, 0x01}, strings[1:]...)
	traces := append([]byte{0xdd, 0, 0x20, 0, 0}, make([]byte, 1<<21)...)
	for i := range traces[5:] {
		traces[5+i] = 0x90
	}
	for _, test := range []struct {
		format decode.Format
		body   []byte
	}{{decode.FormatV04, traces}, {decode.FormatV05, strings}, {decode.FormatV1, streamed}} {
		c := datadog.NewCounter()
		if c.Count(test.format, test.body, "go", true, policyOf(t)) == nil {
			t.Errorf("%s: it was counted", test.format)
		}
		if table, decoder := c.Decoded(); len(table.Groups) > 1<<16 || len(decoder.Strings()) > 1<<18 {
			t.Errorf("%s: %d traces and %d strings are held", test.format, len(table.Groups),
				len(decoder.Strings()))
		}
	}
}

// TestLimits_SpansPerBody: the maximum number of spans for the body's length is counted;
// with one more, the body is left to the agent.
func TestLimits_SpansPerBody(t *testing.T) {
	bodyOf := func(spans int) []byte {
		return append(append([]byte{0x91}, array32(0xdd, spans)...), bytes.Repeat([]byte{0x80}, spans)...)
	}
	most := 1
	for spantable.MaxSpans(len(bodyOf(most+1))) > most {
		most++
	}
	c, policy := datadog.NewCounter(), policyOf(t)
	if err := c.Count(decode.FormatV04, bodyOf(most), "go", true, policy); err != nil {
		t.Errorf("%d spans: %v", most, err)
	}
	if err := c.Count(decode.FormatV04, bodyOf(most+1), "go", true, policy); err == nil {
		t.Errorf("%d spans were read", most+1)
	}
}

// TestDuration_Overflow checks that a duration whose end would overflow counts as 0, as in the agent.
func TestDuration_Overflow(t *testing.T) {
	const start = int64(1e18)
	body := encode(t, []any{[]any{map[string]any{
		"service":  "shop",
		"name":     "op",
		"resource": "r",
		"span_id":  1,
		"start":    start,
		"duration": int64(math.MaxInt64),
		"metrics":  map[string]float64{"_dd.measured": 1},
	}}})
	c := datadog.NewCounter()
	if err := c.Count(decode.FormatV04, body, "go", true, policyOf(t)); err != nil {
		t.Fatal(err)
	}
	for _, s := range countedBy(t, c) {
		if s.Duration != 0 || s.End != start {
			t.Errorf("it lasted %d ns and ended at %d", s.Duration, s.End)
		}
	}
}
