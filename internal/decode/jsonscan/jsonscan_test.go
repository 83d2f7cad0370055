package jsonscan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
)

// seeds are valid and invalid JSON texts.
var seeds = []string{
	`{"a":[1,-0.5e+3,true,false,null,"x\u00e9\ud83d\ude00\n\/"],"b":{},"c":[]}`, ` [ ] `, `"\ud83d"`,
	`"é\"\\"`, `0`, `-1E5`,
	`[1 2]`, `{"a" 1}`, `{"a";1}`, `{"a":1,}`, `[1,]`, `[,1]`, `01`, `[01]`, `1.`, `-`, `1e`, "\"\x01\"",
	`"\x"`, `"\u12g4"`, `"`, `"\`, `"\u1`, `[}`, `{]`,
	`{"a":[{"b":[}]}`, `tru`, `{"a":}`, `{1:2}`, ``, `[`, `{`, `{"a"`, `{"a":1`, `[1`, `nul`, `[[]`, `{} {}`,
	"\"\xff\"", `"\ud83d\u0041"`, `"\udc00"`,
}

// isScannedAsTheModelDoes checks that SkipValue accepts the same inputs as encoding/json, and that
// strings have the same values.
func isScannedAsTheModelDoes(t *testing.T, body []byte) {
	t.Helper()
	s := jsonscan.Scanner{Body: body}
	written, err := s.SkipValue([]byte("before"))
	s.Peek()
	isTaken := err == nil && s.Pos == len(body)
	if isTaken != json.Valid(body) || string(written) != "before" {
		t.Errorf("%q: %v, up to %d of %d, %q", body, err, s.Pos, len(body), written)
	}
	s = jsonscan.Scanner{Body: body}
	text, err := s.ReadString()
	if err != nil {
		return
	}
	var want string
	if json.Unmarshal(body[:s.Pos], &want) == nil && string(text.AppendTo(nil)) != want {
		t.Errorf("%q says %q, want %q", body, text.AppendTo(nil), want)
	}
}

// TestGrammar_AsInEncodingJSON compares the grammar with that of encoding/json, also for
// truncated input.
func TestGrammar_AsInEncodingJSON(t *testing.T) {
	for _, seed := range seeds {
		for end := range len(seed) + 1 {
			isScannedAsTheModelDoes(t, []byte(seed[:end]))
			isScannedAsTheModelDoes(t, []byte("["+seed[:end]+"]"))
		}
	}
}

// TestSkipValue_DeepNesting checks that SkipValue needs one byte per nesting level.
func TestSkipValue_DeepNesting(t *testing.T) {
	const depth = 200_000
	body := strings.Repeat(`{"a":[`, depth) + strings.Repeat("]}", depth)
	s := jsonscan.Scanner{Body: []byte(body)}
	room := make([]byte, 0, 2*depth)
	if written, err := s.SkipValue(room); err != nil || len(written) != 0 || cap(written) != cap(room) {
		t.Errorf("%v, %d bytes of %d", err, len(written), cap(written))
	}
}

// TestEachElement_VisitsAll checks EachElement, with white space and with missing commas.
func TestEachElement_VisitsAll(t *testing.T) {
	for body, want := range map[string]string{
		` [ "a" , "b" ]x`: "ab 14",
		`[]`:              " 2",
		`["a" "b"]`:       "a " + jsonscan.ErrSyntax.Error(),
		`["a";"b"]`:       "a " + jsonscan.ErrSyntax.Error(),
		`["a"`:            "a " + jsonscan.ErrSyntax.Error(),
	} {
		s := jsonscan.Scanner{Body: []byte(body)}
		s.Peek()
		got := ""
		err := s.EachElement(']', func() error {
			text, err := s.ReadString()
			got += string(text.Raw)
			return err
		})
		if got += fmt.Sprint(" ", s.Pos); err != nil {
			got = strings.Fields(got)[0] + " " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestParseInteger_EachNotation checks ParseInteger for integers in all notations.
func TestParseInteger_EachNotation(t *testing.T) {
	for text, want := range map[string]string{
		"5":    "5 true",
		"-1":   "18446744073709551615 true",
		"1.0":  "1 true",
		"1e3":  "1000 true",
		"1.5":  "0 false",
		"1e30": "0 false", "18446744073709551615": "18446744073709551615 true", "": "0 false",
	} {
		n, isOne := jsonscan.ParseInteger([]byte(text))
		if got := fmt.Sprint(n, " ", isOne); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// FuzzSkip compares the scanner with encoding/json.
func FuzzSkip(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 5000 { // encoding/json limits nesting to 10000 levels
			isScannedAsTheModelDoes(t, body)
		}
	})
}
