package datadog_test

import (
	"maps"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// TestStrings_MisplacedEmpty: a v0.5 body whose empty string is not the first one is counted if only
// uncounted spans refer to it, and left to the agent otherwise.
func TestStrings_MisplacedEmpty(t *testing.T) {
	const empty = 3
	dict := []string{
		"shop", "op", "GET /", "", "web", "span.kind", "server", "some.tag", "of no interest",
		"_dd.measured",
	}
	type fields struct {
		service, name, resource, typ int
		meta                         map[int]int
		metrics                      map[int]float64
	}
	root := fields{0, 1, 2, 4, map[int]int{5: 6}, nil} // counted because it is a server span
	inner := fields{0, 1, 2, 4, nil, nil}              // not counted
	with := func(f fields, change func(*fields)) fields { change(&f); return f }
	for name, test := range map[string]struct {
		dict  []string
		spans []fields
		left  bool
	}{
		"ambiguous": {dict, []fields{root, inner}, false},
		"an uncounted span's": {dict, []fields{root, with(inner, func(f *fields) {
			f.typ = empty
		})}, false},
		"a tag of no interest": {dict, []fields{with(root, func(f *fields) {
			f.meta = map[int]int{5: 6, 7: empty}
		}), inner}, false},
		"a counted span's type": {dict, []fields{with(root, func(f *fields) {
			f.typ = empty
		}), inner}, true},
		"a measured span's type": {dict, []fields{root, with(inner, func(f *fields) {
			f.typ, f.metrics = empty, map[int]float64{9: 1}
		})}, true},
		"a service": {dict, []fields{root, with(inner, func(f *fields) {
			f.service = empty
		})}, true},
		"a name": {dict, []fields{root, with(inner, func(f *fields) {
			f.name = empty
		})}, true},
		"a resource": {dict, []fields{root, with(inner, func(f *fields) {
			f.resource = empty
		})}, true},
		"a tag that a rule reads": {dict, []fields{with(root, func(f *fields) {
			f.meta = map[int]int{5: empty}
		}), inner}, true},
		"a tag's name": {dict, []fields{with(root, func(f *fields) {
			f.meta = map[int]int{empty: 6}
		}), inner}, true},
		"a number's name": {dict, []fields{with(root, func(f *fields) {
			f.metrics = map[int]float64{empty: 1}
		}), inner}, true},
		"two of them":            {append(dict[:len(dict):len(dict)], ""), []fields{root, inner}, true},
		"one that is first, too": {append([]string{""}, dict[1:]...), []fields{root, inner}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var trace []any
			for i, f := range test.spans {
				meta, metrics := map[int]int{}, map[int]float64{}
				maps.Copy(meta, f.meta)
				maps.Copy(metrics, f.metrics)
				trace = append(trace,
					[]any{
						f.service, f.name, f.resource, 7, i + 1, i, int64(1e18), 1, 0, meta, metrics,
						f.typ,
					})
			}
			c := datadog.NewCounter()
			err := c.Count(decode.FormatV05, encode(t, []any{test.dict, []any{trace}}), "jvm", true,
				policyOf(t))
			if (err != nil) != test.left {
				t.Errorf("counted: %v", err)
			}
			if err != nil {
				return
			}
			if n := countedSpans(t, c); n != 1 {
				t.Errorf("%d spans were counted", n)
			}
		})
	}
}
