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
	written := s.SkipValue([]byte("before"))
	s.Peek()
	err := s.Err()
	isTaken := err == nil && s.Pos == len(body)
	if isTaken != json.Valid(body) || string(written) != "before" {
		t.Errorf("%q: %v, up to %d of %d, %q", body, err, s.Pos, len(body), written)
	}
	s = jsonscan.Scanner{Body: body}
	text := s.ReadString()
	if s.Err() != nil {
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
	written := s.SkipValue(room)
	if s.Err() != nil || len(written) != 0 || cap(written) != cap(room) {
		t.Errorf("%v, %d bytes of %d", s.Err(), len(written), cap(written))
	}
}

// TestNextElement_VisitsAll checks NextElement, with white space and with missing commas.
func TestNextElement_VisitsAll(t *testing.T) {
	for body, want := range map[string]string{
		` [ "a" , "b" ]x`: "ab 14",
		`[]`:              " 2",
		`["a" "b"]`:       "a " + jsonscan.ErrSyntax.Error(),
		`["a";"b"]`:       "a " + jsonscan.ErrSyntax.Error(),
		`["a"`:            "a " + jsonscan.ErrSyntax.Error(),
		`["a",]`:          "a " + jsonscan.ErrSyntax.Error(),
		`[`:               " " + jsonscan.ErrSyntax.Error(),
	} {
		s := jsonscan.Scanner{Body: []byte(body)}
		s.Peek()
		s.Enter()
		got := ""
		for s.NextElement(']') {
			got += string(s.ReadString().Raw)
		}
		if s.Err() != nil {
			got += " " + s.Err().Error()
		} else {
			got += fmt.Sprint(" ", s.Pos)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestAccept_OnlyCommonNotations checks that AcceptName and AcceptInteger read the notations that they
// document, and nothing of any other text.
func TestAccept_OnlyCommonNotations(t *testing.T) {
	for body, want := range map[string]int{
		`"key":5`: 6, `"key" :5`: 0, `"kex":5`: 0, `"keyy":5`: 0, ` "key":5`: 0, `xkey":`: 0, `"key"`: 0, ``: 0,
	} {
		s := jsonscan.Scanner{Body: []byte(body)}
		if ok := s.AcceptName("key"); ok != (want > 0) || s.Pos != want {
			t.Errorf("name %s: %v, at %d, want %d", body, ok, s.Pos, want)
		}
	}
	for body, want := range map[string]uint64{
		`0,`: 0, `7}`: 7, `"12"`: 12, `9999999999999999999,`: 9999999999999999999,
		`"0"x`: 0,
	} {
		s := jsonscan.Scanner{Body: []byte(body)}
		end := strings.LastIndexAny(body, `"0123456789`) + 1
		if n, ok := s.AcceptInteger(); !ok || n != want || s.Pos != end {
			t.Errorf("integer %s: %d, %v, at %d, want %d", body, n, ok, s.Pos, want)
		}
	}
	for _, body := range []string{
		``, `"`, `""`, `x`, `-1,`, `1`, `1.0,`, `1e3,`, `01,`, `"01"`, `"1`, `"1,`, `"1}`, `1"`, `1 ,`, `"1 "`,
		`10000000000000000000,`,
	} {
		s := jsonscan.Scanner{Body: []byte(body)}
		if n, ok := s.AcceptInteger(); ok || s.Pos != 0 {
			t.Errorf("integer %s: %d, %v, at %d", body, n, ok, s.Pos)
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
