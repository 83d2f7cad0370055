package rules_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules"
)

// TestTagValues_AsInAgent: the cases are from the agent's own tests.
func TestTagValues_AsInAgent(t *testing.T) {
	long := strings.Repeat("a", 300)
	for text, want := range map[string]string{
		"":           "",
		"postgresql": "postgresql",
		"PostgreSQL": "postgresql",
		"a b":        "a_b",
		"a  b__c":    "a_b_c",
		"a_":         "a",
		"_a":         "_a",
		"b__c":       "b_c",
		"!!":         "",
		"a:/.-1":     "a:/.-1",
		"ÄÖ":         "äö",
		"a\xffb":     "a_b",
		"a\uFFFDb":   "a_b",
		"✓x":         "_x",
		long:         long[:200],
		"ẞ":          "ẞ",
		"1a":         "1a", strings.Repeat("a ", 150): strings.TrimSuffix(strings.Repeat("a_", 100), "_"),
		strings.Repeat("✓", 133) + "abcd": "_a",
	} {
		if got := string(rules.AppendTagValue(nil, text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if rules.IsTagValue([]byte(text)) && text != want {
			t.Errorf("%q is reported as a value", text)
		}
	}
}
