package jsonscan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
)

// seeds are JSON, and what is nearly JSON.
var seeds = []string{
	`{"a":[1,-0.5e+3,true,false,null,"x\u00e9\ud83d\ude00\n\/"],"b":{},"c":[]}`, ` [ ] `, `"\ud83d"`,
	`"é\"\\"`, `0`, `-1E5`,
	`[1 2]`, `{"a" 1}`, `{"a";1}`, `{"a":1,}`, `[1,]`, `[,1]`, `01`, `[01]`, `1.`, `-`, `1e`, "\"\x01\"",
	`"\x"`, `"\u12g4"`, `"`, `"\`, `"\u1`, `[}`, `{]`,
	`{"a":[{"b":[}]}`, `tru`, `{"a":}`, `{1:2}`, ``, `[`, `{`, `{"a"`, `{"a":1`, `[1`, `nul`, `[[]`, `{} {}`,
	"\"\xff\"", `"\ud83d\u0041"`, `"\udc00"`,
}

// isScannedAsTheModelDoes: what encoding/json takes is stepped over to its end, and nothing else; what
// a text says is what encoding/json reads.
func isScannedAsTheModelDoes(t *testing.T, body []byte) {
	t.Helper()
	s := jsonscan.Scanner{Body: body}
	written, err := s.Skip([]byte("before"))
	s.Next()
	isTaken := err == nil && s.At == len(body)
	if isTaken != json.Valid(body) || string(written) != "before" {
		t.Errorf("%q: %v, up to %d of %d, %q", body, err, s.At, len(body), written)
	}
	s = jsonscan.Scanner{Body: body}
	text, err := s.Text()
	if err != nil {
		return
	}
	var want string
	if json.Unmarshal(body[:s.At], &want) == nil && string(text.AppendTo(nil)) != want {
		t.Errorf("%q says %q, want %q", body, text.AppendTo(nil), want)
	}
}

// TestTheGrammarIsThatOfEncodingJSON, also where a body is cut anywhere.
func TestTheGrammarIsThatOfEncodingJSON(t *testing.T) {
	for _, seed := range seeds {
		for end := range len(seed) + 1 {
			isScannedAsTheModelDoes(t, []byte(seed[:end]))
			isScannedAsTheModelDoes(t, []byte("["+seed[:end]+"]"))
		}
	}
}

// TestWhatIsDeepIsSteppedOver, with a byte for each end.
func TestWhatIsDeepIsSteppedOver(t *testing.T) {
	const depth = 200_000
	body := strings.Repeat(`{"a":[`, depth) + strings.Repeat("]}", depth)
	s := jsonscan.Scanner{Body: []byte(body)}
	room := make([]byte, 0, 2*depth)
	if written, err := s.Skip(room); err != nil || len(written) != 0 || cap(written) != cap(room) {
		t.Errorf("%v, %d bytes of %d", err, len(written), cap(written))
	}
}

// TestElementsAreVisited, with a comma between each two.
func TestElementsAreVisited(t *testing.T) {
	for body, want := range map[string]string{
		` [ "a" , "b" ]x`: "ab 14",
		`[]`:              " 2",
		`["a" "b"]`:       "a " + jsonscan.ErrSyntax.Error(),
		`["a";"b"]`:       "a " + jsonscan.ErrSyntax.Error(),
		`["a"`:            "a " + jsonscan.ErrSyntax.Error(),
	} {
		s := jsonscan.Scanner{Body: []byte(body)}
		s.Next()
		got := ""
		err := s.Each(']', func() error {
			text, err := s.Text()
			got += string(text.Raw)
			return err
		})
		if got += fmt.Sprint(" ", s.At); err != nil {
			got = strings.Fields(got)[0] + " " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestWhichNumbersAreIntegers of 64 bits, however they are written.
func TestWhichNumbersAreIntegers(t *testing.T) {
	for text, want := range map[string]string{
		"5":    "5 true",
		"-1":   "18446744073709551615 true",
		"1.0":  "1 true",
		"1e3":  "1000 true",
		"1.5":  "0 false",
		"1e30": "0 false", "18446744073709551615": "18446744073709551615 true", "": "0 false",
	} {
		n, isOne := jsonscan.Integer([]byte(text))
		if got := fmt.Sprint(n, " ", isOne); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// FuzzSkip holds the scanner to encoding/json.
func FuzzSkip(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 5000 { // encoding/json ends at a depth of 10000
			isScannedAsTheModelDoes(t, body)
		}
	})
}
