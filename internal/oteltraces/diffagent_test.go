package oteltraces

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/rules/ingest"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
	"github.com/spanstatsd/spanstatsd/internal/traces"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func v07(t *spantable.Table, names *spantable.Names) (dst []byte) {
	for i := range t.Senders {
		s := &t.Senders[i]
		var groups []spantable.Group
		for _, g := range t.Groups {
			if int(g.Sender) == i {
				groups = append(groups, g)
			}
		}
		text := func(name string, of spantable.Text) { dst = appendText(appendText(dst, name), t.String(of)) }
		dst = append(dst, msgpack.FixMap|7)
		text("language_name", s.Lang)
		text("tracer_version", s.TracerVersion)
		text("container_id", s.Container)
		text("hostname", s.Host)
		text("env", s.Env)
		text("app_version", s.Version)
		dst = appendArrayHeader(appendText(dst, "chunks"), len(groups))
		for _, g := range groups {
			dst = appendInteger(appendText(append(dst, msgpack.FixMap|3), "priority"), 1)
			text("origin", g.Origin)
			dst = appendArrayHeader(appendText(dst, "spans"), int(g.Last-g.First))
			for j := range t.SpansOf(&g) {
				s := &t.SpansOf(&g)[j]
				failed := int64(0)
				if s.Status == spantable.StatusError {
					failed = 1
				}
				dst = append(dst, msgpack.FixMap|12)
				dst = appendUnsigned(appendText(dst, "trace_id"), 0)
				dst = appendUnsigned(appendText(dst, "span_id"), s.ID)
				dst = appendUnsigned(appendText(dst, "parent_id"), s.Parent)
				dst = appendInteger(appendText(dst, "start"), int64(s.Start))
				dst = appendInteger(appendText(dst, "duration"), int64(min(s.Duration, math.MaxInt64)))
				dst = appendInteger(appendText(dst, "error"), failed)
				text("service", s.Service)
				text("name", s.Name)
				text("resource", s.Resource)
				text("type", s.Type)
				for k, kind := range []string{"meta", "metrics"} {
					n := 0
					for _, tag := range t.TagsOf(s) {
						if (tag.Value == spantable.IsText) == (k == 0) {
							n++
						}
					}
					dst = appendMapHeader(appendText(dst, kind), n)
					for _, tag := range t.TagsOf(s) {
						if (tag.Value == spantable.IsText) != (k == 0) {
							continue
						}
						dst = appendText(dst, names.Name(tag.Label))
						if k == 0 {
							dst = appendText(dst, t.String(tag.Text()))
						} else {
							dst = appendFloat(dst, math.Float64frombits(tag.Bits))
						}
					}
				}
			}
		}
	}
	return dst
}

func ingested(c *traces.Counter) (all []one, err error) {
	for origin, message := range c.IngestBatches {
		w, err := wire.WalkSpans(message)
		if err != nil {
			return nil, err
		}
		for s := (wire.Snapshot{}); w.Next(&s); {
			all = append(all, one{origin, string(s.Key), s.Duration, s.End, s.Flags, s.Weight})
		}
	}
	return all, nil
}

func TestNewIngestIsOld(t *testing.T) {
	bodies := recordedBodies(t)
	for i := range 4000 {
		r := rand.New(rand.NewPCG(uint64(i), 6))
		b := randomBody(r, []string{"env", "version", "_dd.origin", "_dd.git.commit.sha", "span.kind", "_dd.base_service", "_top_level", "peer.service", "_dd.partial_version", "http.client_ip", "client.address", "_dd.hostname", "_sampling_priority_v1"})
		bodies[fmt.Sprint("random ", i)] = b
		bodies[fmt.Sprint("mutated ", i)] = mutate(r, b)
	}
	policy, ok := traces.NewPolicy([]string{"peer.service", "db.name", "server.address", "http.client_ip", "rpc.system", "out.host", "http.request.headers.x", "messaging.destination", "_dd.base_service"}, []string{"client", "server", "producer", "consumer"}, nil, traces.Labels{})
	if !ok {
		t.Fatal("policy")
	}
	names := spantable.NewNames(append([]string{""}, policy.Tags()...))
	old, err := NewTranslator(policy.Tags())
	if err != nil {
		t.Fatal(err)
	}
	now, err := ingest.New(names)
	if err != nil {
		t.Fatal(err)
	}
	var request otlp.Request
	var table spantable.Table
	a, b := traces.NewCounter(), traces.NewCounter()
	clock := time.Unix(1_790_000_000, 0)
	a.Now, b.Now = func() time.Time { return clock }, func() time.Time { return clock }
	results := map[string]int{}
	for name, body := range bodies {
		for _, isCounted := range []bool{false, true} {
			oldErr := old.Translate(body, isCounted)
			ofSpans, ofResources := now.Names()
			nowErr := request.Decode(body, ofSpans, ofResources)
			if nowErr == nil {
				nowErr = now.Translate(&request, isCounted, &table)
			}
			if classOf(oldErr) != classOf(nowErr) {
				os.WriteFile("/tmp/differs.bin", body, 0o644)
				t.Errorf("%s: %v, was %v", name, nowErr, oldErr)
				continue
			}
			results[classOf(oldErr)]++
			if oldErr != nil {
				continue
			}
			if old.Counted() != now.Counted() {
				t.Fatalf("%s: %d counted, was %d", name, now.Counted(), old.Counted())
			}
			for i := range request.Resources {
				if request.Resources[i].IsCounted != old.payload.resources[i].isCounted && request.HasSpans(&request.Resources[i]) {
					t.Fatalf("%s: resource %d", name, i)
				}
			}
			errA := a.Count(traces.FormatIngest, old.Written(), "", false, policy)
			errB := b.Count(traces.FormatIngest, v07(&table, names), "", false, policy)
			if (errA == nil) != (errB == nil) {
				t.Fatalf("%s: %v, was %v", name, errB, errA)
			}
			if errA != nil {
				results["uncounted"]++
				continue
			}
			want, err := ingested(a)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := ingested(b)
			results["spans"] += len(want)
			for i := range want {
				if i < len(got) && want[i].origin != got[i].origin {
					t.Fatalf("%s: span %d is\n%+v, was\n%+v", name, i, got[i].origin, want[i].origin)
				}
			}
			if !slices.Equal(got, want) {
				for i := range want {
					if want[i] != got[i] {
						var k, l span.Key
						_ = wire.ReadKey(&k, []byte(got[i].key))
						_ = wire.ReadKey(&l, []byte(want[i].key))
						t.Errorf("%s: span %d is\n%+v %+v, was\n%+v %+v", name, i, got[i], k, want[i], l)
						break
					}
				}
				os.WriteFile("/tmp/differs.bin", body, 0o644)
				t.FailNow()
			}
			_ = bytes.Equal
		}
		old.Release()
		now.Release()
		request.Release()
		table.Release()
		a, b = a.Next(), b.Next()
	}
	t.Log(results)
}
