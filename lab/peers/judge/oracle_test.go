package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	cart  = spanName{"shop", "GET /cart"}
	items = spanName{"shop", "GET /items"}
)

// TestOracle_FindsPlantedErrors: the oracle knows 1,000 spans of two names and 1,000 with unique names.
func TestOracle_FindsPlantedErrors(t *testing.T) {
	for name, test := range map[string]struct {
		cart, items, unique, overflow float64
		told                          float64
		reported                      losses
		want                          score
	}{
		"everything counted":           {cart: 600, items: 400, unique: 1000},
		"unique names in an overflow":  {cart: 600, items: 400, overflow: 1000},
		"lost":                         {cart: 500, items: 400, unique: 1000, want: score{Lost: 100, Unaccounted: 100}},
		"unique names lost":            {cart: 600, items: 400, unique: 700, want: score{Lost: 300, Unaccounted: 300}},
		"reported":                     {cart: 500, items: 400, unique: 1000, reported: losses{"full": 90}, want: score{Lost: 100, Unaccounted: 10}},
		"reported in payloads":         {cart: 500, items: 400, unique: 1000, reported: losses{"payloads": otherUnit}, want: score{Lost: 100}},
		"rejected":                     {cart: 500, items: 400, unique: 1000, told: 100, want: score{Lost: 100}},
		"doubled":                      {cart: 700, items: 400, unique: 1000, want: score{Doubled: 100}},
		"unique names doubled":         {cart: 600, items: 400, unique: 1100, want: score{Doubled: 100}},
		"misnamed":                     {cart: 500, items: 400, unique: 1000, overflow: 100, want: score{Misnamed: 100}},
		"one lost, the other doubled":  {cart: 500, items: 500, unique: 1000, want: score{Lost: 100, Doubled: 100, Unaccounted: 100}},
		"misnamed and doubled":         {cart: 500, items: 400, unique: 1000, overflow: 150, want: score{Misnamed: 100, Doubled: 50}},
		"misnamed, unique ones lost":   {cart: 500, items: 400, unique: 900, overflow: 150, want: score{Misnamed: 50, Lost: 50, Unaccounted: 50}},
		"more reported than are lost":  {cart: 600, items: 400, unique: 1000, reported: losses{"ambiguous": 90}},
		"nothing counted, all refused": {told: 2000, want: score{Lost: 2000}},
	} {
		o := newOracle()
		o.sent(requestOf(cart, 600))
		o.sent(requestOf(items, 400))
		unique := requestOf(spanName{}, 1000)
		for i := range unique.spans {
			unique.spans[i].isUnique = true
		}
		o.sent(unique)
		o.rejected(test.told)
		got := o.judge(counts{
			cart: test.cart, items: test.items, {"shop", "load user 7"}: test.unique, {"shop", "overflow"}: test.overflow,
		}, test.reported, false)
		if test.want.Sent = 2000; got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func requestOf(name spanName, spans int) request {
	r := request{weight: 1}
	for range spans {
		r.spans = append(r.spans, span{spanName: name})
	}
	return r
}

// TestOracle_ForgivesSmallErrorsOfEstimates: an estimate may be wrong by 1 % per name.
func TestOracle_ForgivesSmallErrorsOfEstimates(t *testing.T) {
	o := newOracle()
	sampled := requestOf(cart, 10)
	sampled.weight = 100
	o.sent(sampled)
	for counted, want := range map[float64]score{990: {}, 1010: {}, 980: {Lost: 20, Unaccounted: 20}, 1020: {Doubled: 20}} {
		if want.Sent = 1000; o.judge(counts{cart: counted}, nil, true) != want {
			t.Errorf("%v counted: %+v, want %+v", counted, o.judge(counts{cart: counted}, nil, true), want)
		}
	}
}

// TestTools_AreShort: a tool is one file of at most 150 lines, so that others can add theirs.
func TestTools_AreShort(t *testing.T) {
	files, err := filepath.Glob("tool_*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if lines := strings.Count(string(text), "\n"); err != nil || lines > 150 {
			t.Errorf("%s has %d lines, %v", file, lines, err)
		}
	}
}
