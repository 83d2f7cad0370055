package oteltraces

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func recordedBodies(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	files, _ := filepath.Glob("../../lab/bench/recorded/testdata/*.http.gz")
	for _, f := range files {
		packed, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.ReadRequest(bufio.NewReader(unpacked))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Fatal(err)
		}
		if request.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			body, _ = io.ReadAll(z)
		}
		if strings.Contains(f, "json") {
			if body, err = otlpjson.FromJSON(nil, body); err != nil {
				t.Fatal(err)
			}
		}
		all[filepath.Base(f)] = body
	}
	if len(all) < 8 {
		t.Fatal(len(all))
	}
	return all
}

func randomBody(r *rand.Rand, extra []string) []byte {
	names := append(slices.Clone(extra), attributeNames[1:]...)
	names = append(names, agentNames[1:]...)
	values := []any{"a", "GET", "POST", "_OTHER", "200", "404", "postgresql", "PostgreSQL", "redis", "aws-api", "grpc", "kafka", "10.0.0.1", "true", "", "OK", "NotFound", 0, 1, 2, 200, 99999, -5, 1.5, 1e21, 2.0, 1.0, true, false, "/route/{id}", "Ünïcode Text", strings.Repeat("long", 30), strings.Repeat("verylong", 100), submessage(nil, 5, nil), submessage(nil, 7, []byte("x")), "server", "client", "fargate", "aws", "gcp", "azure", "a.b.c.d", "localhost", "blocked value with spaces"}
	attributes := func(n int, of []string) (all []attribute) {
		for range n {
			v := values[r.IntN(len(values))]
			if _, is := v.([]byte); is && r.IntN(30) > 0 {
				v = "x"
			}
			all = append(all, attribute{of[r.IntN(len(of))], v})
		}
		return all
	}
	states := []string{"", "", "ot=th:8", "ot=th:c;rv:11111111111111", "vendor=x", "ot=p:2", "bad", "ot=p:63", "a=b,ot=th:0;x:y"}
	var all []madeResource
	for range r.IntN(4) {
		res := madeResource{attributes: sdkResource([]string{"shop", "cart", "", "Web Store"}[r.IntN(4)])}
		if r.IntN(2) == 0 {
			res.attributes = nil
		}
		ofRes := append(slices.Clone(resourceNames[labelService:]), names...)
		res.attributes = append(res.attributes, attributes(r.IntN(6), ofRes)...)
		if r.IntN(8) == 0 {
			res.attributes = append(res.attributes, attribute{statsComputed, []any{"true", "false", "", true, false, 1}[r.IntN(6)]})
		}
		for range r.IntN(3) {
			var spans []madeSpan
			for range r.IntN(12) {
				s := madeSpan{trace: r.Uint64() >> (60 * r.Uint64N(2)), id: r.Uint64N(6), parent: r.Uint64N(6) * r.Uint64N(2), state: states[r.IntN(len(states))], name: []string{"a", "GET /x", "", strings.Repeat("n", 600)}[r.IntN(4)],
					kind: kind(r.IntN(8)), start: began + r.Uint64N(1e9), code: r.IntN(5) - 1, attributes: attributes(r.IntN(8), names)}
				s.end = s.start + r.Uint64N(3e9)
				if r.IntN(30) == 0 {
					s.start = r.Uint64()
				}
				if r.IntN(10) == 0 {
					s.more = submessage(nil, 9, append(submessage(nil, 2, submessage(nil, 1, []byte("late"))), submessage(nil, 1, []byte(names[r.IntN(len(names))]))...))
				}
				if r.IntN(10) == 0 {
					s.more = append(s.more, submessage(nil, 11, submessage(nil, 3, attribute{"x", "y"}.encode()))...)
				}
				spans = append(spans, s)
			}
			for range len(spans) {
				if r.IntN(3) == 0 {
					spans = append(spans, spans[r.IntN(len(spans))])
				}
			}
			res.scopes = append(res.scopes, spans)
		}
		all = append(all, res)
	}
	b := request(all...)
	if r.IntN(5) == 0 { // scopes with attributes
		b = bytes.ReplaceAll(b, submessage(nil, 1, submessage(nil, 1, []byte("io.opentelemetry.tomcat-10.0"))), submessage(nil, 1, submessage(nil, 3, attribute{"aaaaaaaaaaaaaaa", 11111}.encode())))
	}
	return b
}

type one struct {
	origin   span.Origin
	key      string
	duration uint64
	end      int64
	flags    span.Flags
	weight   float64
}

func oldCounted(t testing.TB, c *Counter) (all []one) {
	for origin, message := range c.Batches {
		w, err := wire.WalkSpans(message)
		if err != nil {
			t.Fatal(err)
		}
		for s := (wire.Snapshot{}); w.Next(&s); {
			all = append(all, one{origin, string(s.Key), s.Duration, s.End, s.Flags, s.Weight})
		}
	}
	return all
}

func newCounted(batches func(func(span.Origin, *span.Batch) bool)) (all []one) {
	for origin, b := range batches {
		for i := range b.Snapshots {
			s := &b.Snapshots[i]
			all = append(all, one{origin, string(b.KeyOf(s)), s.Duration, s.End, s.Flags, s.Weight})
		}
	}
	return all
}

func classOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrTooMuch), errors.Is(err, spantable.ErrTooMuch):
		return "too much"
	case errors.Is(err, ErrUnread), errors.Is(err, otlp.ErrUnread):
		return "unread"
	}
	return err.Error()
}

func mutate(r *rand.Rand, body []byte) []byte {
	body = slices.Clone(body)
	for range 1 + r.IntN(3) {
		if len(body) == 0 {
			return body
		}
		at := r.IntN(len(body))
		end := min(len(body), at+r.IntN(6))
		switch r.IntN(5) {
		case 0:
			body = slices.Delete(body, at, end)
		case 1:
			body = slices.Insert(body, at, slices.Clone(body[at:end])...)
		case 2:
			body[at] = byte(r.Uint32())
		case 3:
			body[at]++
		case 4:
			body[at] ^= 1 << r.IntN(8)
		}
	}
	return body
}

func TestNewIsOld(t *testing.T) {
	bodies := recordedBodies(t)
	for i := range 3000 {
		r := rand.New(rand.NewPCG(uint64(i), 5))
		b := randomBody(r, []string{"tenant", "plan"})
		bodies[fmt.Sprint("random ", i)] = b
		bodies[fmt.Sprint("mutated ", i)] = mutate(r, b)
	}
	old, now := NewCounter(), otel.NewCounter()
	l := Labels{Attributes: []string{"tenant", "plan", "service.name", "db.system"}}
	oldPolicy, nowPolicy := NewPolicy(l), otel.NewPolicy(otel.Labels{Attributes: l.Attributes})
	var sample sampling.Sample
	results := map[string]int{}
	for name, body := range bodies {
		oldErr, nowErr := old.Count(body, oldPolicy), now.Count(body, nowPolicy)
		if classOf(oldErr) != classOf(nowErr) {
			t.Errorf("%s: %v, was %v", name, nowErr, oldErr)
			os.WriteFile("/tmp/differs.bin", body, 0o644)
			continue
		}
		results[classOf(oldErr)]++
		want, got := oldCounted(t, old), newCounted(now.Batches)
		for i := range old.payload.records { // a span that ends before it starts ends when it starts
			if rec := &old.payload.records[i]; oldErr == nil && rec.end < rec.start {
				results["backwards"]++
			}
		}
		if len(want) != len(got) {
			t.Fatalf("%s: %d spans, were %d", name, len(got), len(want))
		}
		for i := range want {
			if want[i].end != got[i].end && want[i].duration == 0 {
				want[i].end = got[i].end
			}
			if want[i] != got[i] {
				t.Fatalf("%s: span %d is\n%+v, was\n%+v", name, i, got[i], want[i])
			}
		}
		for _, k := range []*Keeping{nil, {Share: 0}, {Share: 1}, {Share: 0.3, Errors: true}, {Share: 0.05, Slow: time.Second}} {
			for _, isMarked := range []bool{false, true} {
				var nk *sampling.Keeping
				if k != nil {
					nk = &sampling.Keeping{Share: k.Share, Errors: k.Errors, Slow: k.Slow}
				}
				a, b := old.Measure(k, isMarked), sample.Measure(now.Request(), nk, isMarked)
				if a.IsWhole != b.IsWhole || a.Size != b.Size || a.Kept != Tally(b.Kept) || a.Gone != Tally(b.Gone) {
					t.Fatalf("%s: %+v %v: left %+v, was %+v", name, k, isMarked, b, a)
				}
				if !a.IsWhole {
					x, y := old.AppendLeft(nil), sample.AppendLeft(nil)
					if !bytes.Equal(x, y) || len(x) != a.Size {
						t.Fatalf("%s: %+v %v:\n%q, was\n%q", name, k, isMarked, y, x)
					}
				}
				if oldErr != nil {
					continue
				}
				var goes []Going
				old.GoingOn(func(g Going) bool { goes = append(goes, g); return true })
				for c := range now.Counted {
					p, s := &now.Request().Places[c.Span], &now.Request().Spans[c.Span]
					if !sample.GoesOn(c.Span) || s.ID == 0 || p.TraceHigh|p.TraceLow == 0 {
						continue
					}
					g := Going{c.Batch, c.At, p.TraceHigh, p.TraceLow, s.ID}
					if len(goes) == 0 || goes[0] != g {
						t.Fatalf("%s: %+v goes on", name, g)
					}
					goes = goes[1:]
				}
				if len(goes) > 0 {
					t.Fatalf("%s: %+v went on", name, goes)
				}
			}
		}
		old, _ = old.Next(), 0
		now.Release()
		sample.Release()
	}
	t.Log(results)
}

func BenchmarkBoth(b *testing.B) {
	bodies := recordedBodies(b)
	bodies["web"] = webRequest(128)
	oldPolicy, nowPolicy := NewPolicy(Labels{}), otel.NewPolicy(otel.Labels{})
	for _, name := range []string{"web", "java.http.gz", "java-all.http.gz", "go.http.gz", "node-16.http.gz", "python.http.gz"} {
		body := bodies[name]
		b.Run(name, func(b *testing.B) {
			old, now := NewCounter(), otel.NewCounter()
			var times [2]time.Duration
			b.ReportAllocs()
			for range b.N {
				for i := range 2 {
					before := cpuTime(b)
					for range 20 {
						if i == 0 {
							_ = old.Count(body, oldPolicy)
							old = old.Next()
						} else {
							_ = now.Count(body, nowPolicy)
							now.Release()
						}
					}
					times[i] += cpuTime(b) - before
				}
			}
			_ = now.Count(body, nowPolicy)
			spans := float64(len(now.Request().Spans) * b.N * 20)
			b.ReportMetric(float64(times[0])/spans, "old-ns/span")
			b.ReportMetric(float64(times[1])/spans, "new-ns/span")
			b.ReportMetric(float64(times[1])/float64(times[0]), "ratio")
		})
	}
}
