package tracestate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestThreshold_AsInSpecification: the specification has a table of shares and of
// thresholds with a precision of 3, 4 and 5 digits.
func TestThreshold_AsInSpecification(t *testing.T) {
	for _, test := range []struct {
		n    float64
		want string
	}{
		{1, "0 0 0"},
		{2, "8 8 8"},
		{3, "aab aaab aaaab"},
		{4, "c c c"},
		{5, "ccd cccd ccccd"},
		{8, "e e e"},
		{10, "e66 e666 e6666"},
		{16, "f f f"},
		{100, "fd71 fd70a fd70a4"},
		{1000, "ffbe7 ffbe77 ffbe76d"},
		{10000, "fff972 fff9724 fff97247"},
		{100000, "ffff584 ffff583a ffff583a5"},
		{1000000, "ffffef4 ffffef39 ffffef391"},
	} {
		var got []string
		for precision := 3; precision <= 5; precision++ {
			got = append(got, string(appendThreshold(nil, thresholdOf(1/test.n, precision))))
		}
		if joined := strings.Join(got, " "); joined != test.want {
			t.Errorf("1 in %v: %s, want %s", test.n, joined, test.want)
		}
	}
	if thresholdOf(0, precision) != Never || thresholdOf(0x1p-57, precision) != Never ||
		thresholdOf(0x1p-56, precision) != Never-1 {
		t.Error("the smallest shares")
	}
}

// TestThreshold_RoundTrip also covers trailing zeros, which are optional.
func TestThreshold_RoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		want := rnd.Uint64N(Never) >> rnd.IntN(56) << rnd.IntN(56) & (Never - 1)
		text := string(appendThreshold(nil, want))
		if len(text) > 1 && strings.HasSuffix(text, "0") {
			t.Fatalf("%x is written as %s", want, text)
		}
		for _, text := range []string{
			text, text + strings.Repeat("0", maxDigits-len(text)),
			strings.ToUpper(text),
		} {
			s := Read([]byte("ot=th:" + text))
			if !s.HasThreshold || s.Threshold != want {
				t.Fatalf("%x is written as %s, and read as %+v", want, text, s)
			}
		}
	}
}

// TestWeight_IsAdjustedCount: the cases are the specification's examples.
func TestWeight_IsAdjustedCount(t *testing.T) {
	for text, want := range map[string]float64{
		"":                               1,
		"ot=th:0":                        1,
		"ot=th:8":                        2,
		"ot=th:c":                        4,
		"ot=th:fd70a4":                   100.00009536752259,
		"ot=th:ffbe77":                   1000.012874769029,
		"vendor=x,ot=rv:ff;th:8":         1, // malformed
		"ot=rv:0000000000000f;th:8":      1, // inconsistent: the span would not have been sampled
		"ot=rv:7fffffffffffff;th:8":      1,
		"ot=rv:80000000000000;th:8":      2,
		" vendor=x , ot=p:8;th:8;r:62 ,": 2,
		"ot=rv:0000000000000f":           1,
		"ot=th:":                         1,
		"ot=th:g":                        1,
		"ot=th:000000000000000":          1,
		"ot=th:8;th:c":                   1,
		"ot=th:8,ot=th:8":                1,
		"ot=th:8;":                       1,
		"ot=th:8;X:1":                    1,
		"ot=th:8;x:$":                    1,
		"ot=th:8,Vendor=x":               1,
		"ot=th:8,x":                      1,
		"ot=th:8,x=":                     1,
		"ot=th:8,x=\x7f":                 1,
		"ot=th:8,a@b=x":                  2,
		"ot=th:8,@b=x":                   1,
		"ot=th:8,a@=x":                   1,
		"ot=th:8,1a=x":                   1,
		"ot=th:8,1a@b=x":                 2,
		"ot=th:8,x=" + strings.Repeat("y", maxValue):               2,
		"ot=th:8,x=" + strings.Repeat("y", maxValue+1):             1,
		"ot=th:8" + strings.Repeat(",x=y", maxMembers-1):           2,
		"ot=th:8" + strings.Repeat(",x=y", maxMembers):             1,
		"ot=th:8" + strings.Repeat(" ", maxBytes-len("ot=th:8")):   2,
		"ot=th:8" + strings.Repeat(" ", maxBytes-len("ot=th:8")+1): 1,
	} {
		s := Read([]byte(text))
		if got := s.Weight(); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%q weighs %v, want %v", text, got, want)
		}
	}
}

// TestTracestate_Written: the cases include the specification's examples. Other entries
// stay, and OpenTelemetry's entry moves to the start because it was modified.
func TestTracestate_Written(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "ot=th:c",
		"ot=p:8;r:62":               "ot=p:8;r:62;th:c",
		"ot=p:8;th:7;r:62":          "ot=p:8;r:62;th:c",
		"ot=th:8":                   "ot=th:c",
		"ot=th:8;rv:6e6d1a75832a2f": "ot=rv:6e6d1a75832a2f;th:c",
		"rojo=1, congo=t61 ":        "ot=th:c,rojo=1,congo=t61",
		"rojo=1,ot=th:8,,congo=t61": "ot=th:c,rojo=1,congo=t61",
		"ots=1,ot=x:th":             "ot=x:th;th:c,ots=1",
		"ot=thx:1":                  "ot=thx:1;th:c",
		"what":                      "ot=th:c", // an invalid tracestate is discarded
		"ot=th:8,x":                 "ot=th:c",
		"ot=th:8;th:8,x=y":          "ot=th:c,x=y",
	} {
		s := Read([]byte(text))
		got := string(s.WithThreshold(nil, []byte(text), 0xc<<52))
		if got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if again := Read([]byte(got)); again.Threshold != 0xc<<52 || again.Randomness != s.Randomness ||
			again.IsMalformed {
			t.Errorf("%q is read as %+v", got, again)
		}
	}
}

// TestTracestate_FullMakesRoom: the result is valid, contains the threshold, and lacks no more entries
// than necessary.
func TestTracestate_FullMakesRoom(t *testing.T) {
	for what, of := range map[string]func(n int) string{
		"an entry": func(n int) string { return "ot=x:" + strings.Repeat("y", n) },
		"all": func(n int) string {
			return "a=" + strings.Repeat("y", 256) + ",b=" + strings.Repeat("y", 256) + ",c=" +
				strings.Repeat("y", 240) + ",d=" + strings.Repeat("y", n)
		},
		"its count": func(n int) string { return strings.Repeat("x=y,", min(n, maxMembers)) },
	} {
		complete := 0
		for n := 1; n <= 254; n++ {
			text := []byte(of(n))
			s := Read(text)
			written := s.WithThreshold([]byte("overwritten"), text, Never-1)
			again := Read(written)
			if s.IsMalformed || again.IsMalformed || again.Threshold != Never-1 ||
				len(written) > len(text)+GrowthBytes {
				t.Fatalf("%s of %d: %s becomes %s", what, n, text, written)
			}
			if strings.Count(string(written), "y") == strings.Count(string(text), "y") {
				complete++
			}
		}
		want := map[string]int{"an entry": 236, "all": 240, "its count": maxMembers - 1}[what]
		if complete != want {
			t.Errorf("%s: %d of 254 stay complete, want %d", what, complete, want)
		}
	}
}

// TestThreshold_AboveRandomnessIsNone: a span whose randomness is below its threshold is treated like
// one without threshold.
func TestThreshold_AboveRandomnessIsNone(t *testing.T) {
	for text, want := range map[string]bool{
		"ot=th:fff":                   true,
		"ot=th:fff;rv:ffefffffffffff": false,
		"ot=th:fff;rv:fff00000000000": true,
		"ot=th:7":                     false,
		"":                            false,
	} {
		s := Read([]byte(text))
		if got := s.HasThresholdAtLeast(8 << 52); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if s := Read([]byte("ot=th:c;rv:00000000000000")); true {
		if rate, ok := s.Rate(); rate != 0.25 || !ok {
			t.Errorf("the agent reads %v, %v", rate, ok)
		}
	}
}

// TestTracestate_Rates: the rate is read from the threshold, or from the exponent of older
// samplers.
func TestTracestate_Rates(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "ot=th:c": 0.25, "ot=p:2": 0.25, "ot=p:0": 1, "ot=p:62": 0x1p-62, "ot=p:63": 0, "ot=p:x": 0,
		"ot=r:62;p:1": 0.5, "ot=p:1;th:c": 0.25, "what": 0, "x=y": 0,
	} {
		s := Read([]byte(text))
		if got, ok := s.Rate(); got != want && ok || ok != (want > 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
}
