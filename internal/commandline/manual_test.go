package commandline

import "testing"

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"a-b": `a\-b`, ".TH\n'x\ny": "\\&.TH\n\\&'x\ny", `\n`: `\en`,
	} {
		if got := escape(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
