package sanitize_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// hidden has characters that are invisible, or that reverse, join or terminate the adjacent text.
const hidden = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" +
	"\u200e\u200f\u061c\u200b\u2028\x7f\u009b\ufeff\U000e0041"

func TestEscape_InvisibleCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "GET /": "GET /", "naïve ✓ 日本 عربي": "naïve ✓ 日本 عربي", "a\tb\x1b[2J": `a\tb\x1b[2J`,
		"a\nb":         `a\nb`,
		"gpj\u202eexe": `gpj\u202eexe`, "\u2067a\u2069": `\u2067a\u2069`, "\xff": `\ufffd`,
		"\u009b": `\u009b`, "\U000e0041": `\U000e0041`,
	} {
		if got := sanitize.Text(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
	if got := sanitize.Lines("a\u202e\nb\x07"); got != "a\\u202e\nb\\a" {
		t.Errorf("lines are shown as %q", got)
	}
}

// TestJSON_MeaningIsUnchanged checks that the decoded document is unchanged, and that all characters are visible.
func TestJSON_MeaningIsUnchanged(t *testing.T) {
	texts := map[string]string{"resource": "a" + hidden + "b", "plain": "naïve ✓ \"quoted\" \\u202e \ufffd"}
	var document bytes.Buffer
	if err := json.NewEncoder(sanitize.NewJSONWriter(&document)).Encode(texts); err != nil {
		t.Fatal(err)
	}
	for _, r := range hidden {
		if bytes.ContainsRune(document.Bytes(), r) {
			t.Errorf("%U is not shown in %s", r, document.Bytes())
		}
	}
	var read map[string]string
	if err := json.Unmarshal(document.Bytes(), &read); err != nil || read["resource"] != texts["resource"] ||
		read["plain"] != texts["plain"] {
		t.Errorf("%v: %q", err, read)
	}
	if !bytes.Contains(document.Bytes(), []byte("naïve ✓")) {
		t.Errorf("what can be seen is escaped: %s", document.Bytes())
	}
}
