package traces

import (
	"bytes"
	"testing"
)

// TestABodyThatWouldGrowStaysAsItIs: where the strings that must be sent ahead are more than
// what is cut.
func TestABodyThatWouldGrowStaysAsItIs(t *testing.T) {
	body := bodyV1(t, 3)
	c, before := NewCounter(), bytes.Clone(body)
	if err := c.Count(FormatV1, body, "go", true, policyOf(t)); err != nil {
		t.Fatal(err)
	}
	if left, traces, spans := c.Cut(body); traces != 0 || spans != 0 || !bytes.Equal(left, before) {
		t.Errorf("%d traces with %d spans were cut, %d of %d bytes are left", traces, spans, len(left), len(before))
	}
}

// TestOnlyAPriorityOfNoneIsLeftToTheAgent: a trace without a priority is judged by the agent.
func TestOnlyAPriorityOfNoneIsLeftToTheAgent(t *testing.T) {
	for priority, stays := range map[int]bool{-129: false, noPriority: true, -127: false, 0: false, 1: true} {
		span := ordered{1, "s", 2, "n", 3, "r", 4, 1, 6, 1}
		body := encode(t, ordered{11, []any{ordered{1, priority, 4, []any{span}}}})
		c := NewCounter()
		if err := c.Count(FormatV1, body, "go", true, policyOf(t)); err != nil {
			t.Fatal(err)
		}
		if _, traces, _ := c.Cut(body); (traces == 0) != stays {
			t.Errorf("of priority %d %d traces were cut", priority, traces)
		}
	}
}

// TestStringsThatAreSentAheadAreTheFirst, and there is one list of traces: other bodies, which
// no tracer writes, are left to the agent.
func TestStringsThatAreSentAheadAreTheFirst(t *testing.T) {
	ahead, lang := []any{1, []any{"go"}}, []any{3, ""}
	for _, test := range []struct {
		body  ordered
		reads bool
	}{
		{append(ordered(ahead), lang...), true},
		{append(ordered(lang), ahead...), false},
		{ordered{11, []any{}, 3, ""}, true},
		{ordered{11, []any{}, 11, []any{}}, false},
	} {
		if err := NewCounter().Count(FormatV1, encode(t, test.body), "go", true, policyOf(t)); (err == nil) != test.reads {
			t.Errorf("%v: %v", test.body, err)
		}
	}
}
