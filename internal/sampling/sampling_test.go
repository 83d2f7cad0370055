package sampling_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/spanstatsd/spanstatsd/internal/sampling"
)

// TestShare_Parsed also checks that an invalid share is rejected.
func TestShare_Parsed(t *testing.T) {
	for text, want := range map[string]Policy{
		"0.05":                {Share: 0.05},
		"1,errors":            {Share: 1, Errors: true},
		"0,slow:500ms,errors": {Errors: true, Slow: 500 * time.Millisecond},
	} {
		if got, err := ParsePolicy(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "errors", "5%", "1.5", "-1", "NaN", "0.1,", "0.1,error", "0.1,slow",
		"0.1,slow:", "0.1,slow:0s", "0.1,slow:-1s",
	} {
		if got, err := ParsePolicy(text); err == nil ||
			!strings.HasPrefix(err.Error(), "parse otlp-keep: ") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
