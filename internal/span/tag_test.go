package span

import (
	"strings"
	"testing"
)

// Blocked replaces the value of an additional tag, as in the concentrators of the agent and the tracers, if
// the value is longer than 200 bytes, however long the key is. A peer tag is truncated as a whole. A value
// that is already Blocked stays unchanged.
func TestTags_TooLongAdditionalIsBlocked(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		of           Label
		tag, becomes string
	}{
		{LabelAdditionalTag, "tier:gold", "tier:gold"},
		{LabelAdditionalTag, "tier:" + x(200), "tier:" + x(200)},
		{LabelAdditionalTag, "tier:" + x(201), "tier:tracer_blocked_value"},
		{LabelAdditionalTag, "tier:" + x(1<<20), "tier:tracer_blocked_value"},
		{LabelAdditionalTag, "tier:a:" + x(199), "tier:tracer_blocked_value"},
		{LabelAdditionalTag, x(200) + ":" + x(200), x(200) + ":" + x(200)},
		{LabelAdditionalTag, x(200) + ":" + x(201), x(200) + ":tracer_blocked_value"},
		{LabelAdditionalTag, x(201) + ":gold", x(200)},
		{LabelAdditionalTag, x(300), x(200)},
		{LabelAdditionalTag, "tier:\xff", "tier:\uFFFD"},
		// 202 bytes once invalid bytes are replaced
		{LabelAdditionalTag, "tier:" + strings.Repeat("\xff", 1) + x(199), "tier:tracer_blocked_value"},
		{LabelPeerTag, "tier:" + x(200), "tier:" + x(195)},
	} {
		if got := c.of.NormalizeTag(c.tag); got != c.becomes || c.of.NormalizeTag(got) != got {
			t.Errorf("%s %.30q of %d bytes becomes %.30q of %d, want %.30q", c.of, c.tag, len(c.tag), got,
				len(got), c.becomes)
		}
	}
}
