package collector

import (
	"bytes"
	"compress/gzip"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// good returns a request without problems.
func good() Request {
	attributes := func(status string) []Attribute {
		return []Attribute{{"service.name", "web"}, {"span.name", "op"}, {"status.code", status}}
	}
	histogram := func(status string) Point {
		return Point{
			Attributes: attributes(status), Start: 10, End: 20, Count: 4, Zeros: 1, Sum: 0.0031,
			Scale: 5, Offset: -319, Counts: []uint64{1, 0, 2}, // first bucket starts at 1 ms
			Exemplars: []Exemplar{{
				Time: 10, Value: 0.00105, Span: []byte("12345678"),
				Trace: []byte("1234567812345678"),
			}},
		}
	}
	return Request{{
		Attributes: []Attribute{{"service.name", "web"}, {"tags", []string{"a"}}},
		Scopes: []Scope{{Name: "spanstatsd", Metrics: []Metric{
			{Name: "calls", Temporality: delta, IsMonotonic: true, Points: []Point{
				{Attributes: attributes("STATUS_CODE_UNSET"), Start: 10, End: 20, Value: 4},
			}},
			{Name: "duration", Unit: "s", IsHistogram: true, Temporality: delta, Points: []Point{
				histogram("STATUS_CODE_UNSET"), histogram("STATUS_CODE_ERROR"),
			}},
		}}},
	}}
}

// TestRequest_RecordsProblems: each change of a good request is recorded as a problem.
func TestRequest_RecordsProblems(t *testing.T) {
	metric := func(r Request, i int) *Metric { return &r[0].Scopes[0].Metrics[i] }
	point := func(r Request) *Point { return &metric(r, 1).Points[0] }
	exemplar := func(r Request) *Exemplar { return &point(r).Exemplars[0] }
	for name, change := range map[string]func(Request) Request{
		"a resource twice":          func(r Request) Request { return append(r, good()...) },
		"a resource without a name": func(r Request) Request { r[0].Attributes[0].Key = "x"; return r },
		"no scope":                  func(r Request) Request { r[0].Scopes = nil; return r },
		"a nameless scope":          func(r Request) Request { r[0].Scopes[0].Name = ""; return r },
		"a nameless metric":         func(r Request) Request { metric(r, 0).Name = ""; return r },
		"a metric twice":            func(r Request) Request { metric(r, 0).Name = "duration"; return r },
		"cumulative":                func(r Request) Request { metric(r, 0).Temporality = 2; return r },
		"not monotonic":             func(r Request) Request { metric(r, 0).IsMonotonic = false; return r },
		"milliseconds":              func(r Request) Request { metric(r, 1).Unit = "ms"; return r },
		"no points":                 func(r Request) Request { metric(r, 1).Points = nil; return r },
		"a series twice": func(r Request) Request {
			p := metric(r, 1).Points
			p[1].Attributes[2].Value = "STATUS_CODE_UNSET"
			return r
		},
		"no calls": func(r Request) Request { metric(r, 0).Points[0].Value = 0; return r },
		"an attribute twice": func(r Request) Request {
			point(r).Attributes[1].Key = "service.name"
			return r
		},
		"an attribute of nothing": func(r Request) Request { point(r).Attributes[1].Value = nil; return r },
		"a nameless attribute":    func(r Request) Request { r[0].Attributes[1].Key = ""; return r },
		"an empty window":         func(r Request) Request { point(r).Start = 20; return r },
		"an overlap": func(r Request) Request {
			point(r).Start, point(r).End = 19, 30
			return r
		},
		"a gap": func(r Request) Request {
			point(r).Start, point(r).End = 21, 30
			return r
		},
		"another count": func(r Request) Request { point(r).Count = 5; return r },
		"nothing counted": func(r Request) Request {
			p := point(r)
			p.Count, p.Zeros, p.Sum, p.Counts = 0, 0, 0, nil
			return r
		},
		"too many buckets": func(r Request) Request {
			p := point(r)
			p.Counts = append(make([]uint64, 0, 200), p.Counts...)[:200]
			p.Counts[199] = 1
			p.Count++
			p.Sum += 1
			return r
		},
		"too fine a scale": func(r Request) Request { point(r).Scale = 21; return r },
		"an empty bucket before": func(r Request) Request {
			p := point(r)
			p.Counts = append([]uint64{0}, p.Counts...)
			p.Offset--
			return r
		},
		"an empty bucket behind": func(r Request) Request {
			p := point(r)
			p.Counts = append(p.Counts, 0)
			return r
		},
		"an exemplar before": func(r Request) Request { exemplar(r).Time = 9; return r },
		"an exemplar behind": func(r Request) Request { exemplar(r).Time = 21; return r },
		"an exemplar of a bucket that is empty": func(r Request) Request {
			exemplar(r).Value = 0.00103
			return r
		},
		"an exemplar of no value": func(r Request) Request {
			exemplar(r).Value = math.NaN()
			return r
		},
		"an exemplar of no span": func(r Request) Request {
			exemplar(r).Span = make([]byte, 8)
			return r
		},
		"an exemplar of no trace": func(r Request) Request {
			exemplar(r).Trace = make([]byte, 16)
			return r
		},
		"half the id of a trace": func(r Request) Request {
			exemplar(r).Trace = []byte("12345678")
			return r
		},
		"three exemplars": func(r Request) Request {
			p := point(r)
			p.Exemplars = append(p.Exemplars, p.Exemplars[0], p.Exemplars[0])
			return r
		},
		"a sum below the buckets": func(r Request) Request { point(r).Sum = 0.002; return r },
		"a sum above the buckets": func(r Request) Request { point(r).Sum = 0.0033; return r },
		"a sum that is no number": func(r Request) Request { point(r).Sum /= 0; point(r).Sum *= 0; return r },
	} {
		if problems := check(good()); len(problems) > 0 {
			t.Fatalf("a good request: %s", problems)
		}
		if len(check(change(good()))) == 0 {
			t.Errorf("%s was not noticed", name)
		}
	}
}

func check(r Request) (problems []string) {
	c := &Collector{}
	c.checks.problem = c.problem
	c.checks.window = [2]uint64{0, 10}
	c.accept(r)
	return c.totals.Problems
}

// TestRequest_UnknownFieldIsRejected: each golden request is accepted, and rejected with one unknown
// field added.
func TestRequest_UnknownFieldIsRejected(t *testing.T) {
	for _, name := range []string{"spanmetrics", "datadog"} {
		body, err := os.ReadFile("../../../internal/export/otlp/testdata/" + name + ".binpb")
		if err != nil {
			t.Fatal(err)
		}
		c, err := Start(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body)
		_ = w.Close()
		if status := post(t, c.URL(), body, ""); status != 200 {
			t.Errorf("%s is answered %d", name, status)
		}
		if status := post(t, c.URL(), packed.Bytes(), "gzip"); status != 200 {
			t.Errorf("%s with gzip is answered %d", name, status)
		}
		if totals := c.Totals(); totals.Requests != 2 || totals.Spans == 0 || totals.Errors == 0 {
			t.Errorf("%s: %+v", name, totals)
		}
		for what, other := range map[string][]byte{
			"a field more": protowire.AppendVarint(protowire.AppendTag(bytes.Clone(body), 1,
				protowire.VarintType), 1),
			"half a message": body[:len(body)-1],
			"no UTF-8":       bytes.ReplaceAll(body, []byte("shop"), []byte("sh\xffp")),
			"a group":        protowire.AppendTag(bytes.Clone(body), 1, protowire.StartGroupType),
		} {
			if status := post(t, c.URL(), other, ""); status != http.StatusBadRequest {
				t.Errorf("%s with %s is answered %d", name, what, status)
			}
		}
		if status := post(t, c.URL(), body, "deflate"); status != http.StatusBadRequest {
			t.Errorf("another encoding is answered %d", status)
		}
		if c.Totals().Refused != 5 {
			t.Errorf("%d were refused", c.Totals().Refused)
		}
	}
}

func post(t *testing.T, url string, body []byte, encoding string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", encoding)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestProbe_IsNoRequest(t *testing.T) {
	c := &Collector{}
	c.checks.problem = c.problem
	c.accept(Request{{}})
	c.accept(nil)
	if c.totals.Probes != 2 || c.totals.Requests != 0 || c.totals.ProblemCount != 0 {
		t.Errorf("%+v", c.totals)
	}
}

func TestRows_Quantiles(t *testing.T) {
	var rows Rows
	r := good()
	rows.Add(r)
	coarse := good()
	m := &coarse[0].Scopes[0].Metrics[1]
	m.Points = m.Points[:1]
	m.Points[0].Scale, m.Points[0].Offset, m.Points[0].Counts, m.Points[0].Zeros = 0, -10, []uint64{4}, 0
	rows.Add(coarse)
	all := rows.All()
	if len(all) != 1 || all[0].Service != "web" || all[0].Name != "op" || all[0].Spans != 12 ||
		all[0].Errors != 4 || all[0].Calls != 8 {
		t.Fatalf("%+v", all[0])
	}
	if p := all[0].Quantile(0.1); p != 0 {
		t.Errorf("a tenth took at most %v ns, want 0", p)
	}
	if p := all[0].Quantile(0.5); p < 1e6 || p > 1.1e6 {
		t.Errorf("half took at most %v ns, want about a millisecond", p)
	}
	if p := all[0].Quantile(1); p != 1e9/512 {
		t.Errorf("all took at most %v ns, want the bucket's end", p)
	}
}

func TestRows_AreBounded(t *testing.T) {
	var rows Rows
	for i := range maxSeries + 10 {
		m := &Metric{IsHistogram: true}
		rows.count(strings.Repeat("x", i%200)+string(rune('a'+i/200)), m, &Point{Count: 1, Zeros: 1}, nil)
	}
	if n := len(rows.All()); n != maxSeries+1 {
		t.Errorf("%d rows", n)
	}
}
