package stats

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
)

// TestTracer_SameStatistics covers the labels that are empty in the agent's own statistics but not in a
// tracer's: HTTP method, HTTP endpoint, and additional tags. It compares the payloads that the daemon
// writes, bucket by bucket, with the concentrator that tracers link, which is also part of the agent's
// code.
func TestTracer_SameStatistics(t *testing.T) {
	for range rounds() {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			for !comparedWithTracer(t, rand.New(rand.NewPCG(seed, 2))) {
				t.Log("a bucket ended in the meantime; trying again")
			}
		})
	}
}

// tracer is the concentrator of a tracer.
type tracer struct {
	*stats.SpanConcentrator
	peerTags []string
	origin   stats.PayloadAggregationKey
}

func newTracer(now time.Time) *tracer {
	conf := config.New()
	return &tracer{
		SpanConcentrator: stats.NewSpanConcentrator(&stats.SpanConcentratorConfig{
			ComputeStatsBySpanKind: true, BucketInterval: int64(bucketWidth),
		}, now.Add(-bucketWidth)),
		peerTags: conf.ConfiguredPeerTags(),
		origin: stats.PayloadAggregationKey{
			Hostname: origin.Host, Env: origin.Env, Version: origin.Version, Lang: origin.Lang,
			GitCommitSha: origin.GitCommitSHA, BaseService: origin.Service,
		},
	}
}

// additional lists the additional tags that an operator has configured in the tracer.
var additional = []string{"tenant", "region"}

// add counts a span like a tracer does when the span finishes.
func (c *tracer) add(s *span) (eligible bool) {
	counted, eligible := c.NewStatSpanWithConfig(stats.StatSpanConfig{
		Service: s.raw.Service, Resource: s.raw.Resource, Name: s.raw.Name, Type: s.raw.Type,
		ParentID: s.raw.ParentID, Start: s.raw.Start, Duration: s.raw.Duration, Error: s.raw.Error,
		Meta: s.raw.Meta, Metrics: s.raw.Metrics, PeerTags: c.peerTags, AdditionalMetricTagKeys: additional,
		HTTPMethod: s.snapshot.Key.HTTPMethod, HTTPEndpoint: s.snapshot.Key.HTTPEndpoint,
	})
	if eligible {
		synthetic := map[bool]string{true: "synthetics"}[s.snapshot.Key.Synthetics]
		c.AddSpan(counted, c.origin, "", nil, synthetic)
	}
	return eligible
}

// tracerSpan returns a span with every label, with names that need no normalization.
func tracerSpan(r *rand.Rand, now time.Time) *span {
	s := newSpan(r, now)
	k := &s.snapshot.Key
	k.Service, k.Operation, k.Resource = pick(r, "shop", "cart-db"), pick(r, "http.request", "sql.query"),
		pick(r, "GET /cart", "日本")
	k.Type = pick(r, "", "web", "sql")
	s.raw.Service, s.raw.Name, s.raw.Resource, s.raw.Type = k.Service, k.Operation, k.Resource, k.Type
	k.Kind = s.raw.Meta["span.kind"]
	if k.Kind != "" && r.IntN(5) == 0 { // it is eligible in any case, and stays unchanged
		k.Kind = strings.ToUpper(k.Kind)
		s.raw.Meta["span.kind"] = k.Kind
	}
	k.HTTPMethod, k.HTTPEndpoint = pick(r, "", "GET", "POST"), pick(r, "", "/cart", "/cart/{id}")
	k.Synthetics = r.IntN(8) == 0
	for _, name := range additional {
		if r.IntN(2) == 0 {
			value := fmt.Sprint(r.IntN(3))
			s.raw.Meta[name] = value
			k.AdditionalTags = append(k.AdditionalTags, name+":"+value)
		}
	}
	s.place(r, pb.Trace{{SpanID: 1, Service: "shop"}})
	if s.snapshot.TopLevel {
		s.raw.Metrics["_top_level"] = 1
	}
	return s
}

func comparedWithTracer(t *testing.T, r *rand.Rand) bool {
	at := here(t)
	o := startOracle(t, at.path("agent"), nil)
	f := startFront(t, at.path("front"), o.Socket)
	d := startDaemon(t, at.path("spans"), f.url(), "--max-aggregates=65536",
		"--cardinality-limit=span_kind=64")
	c := d.tracer(origin)
	now := time.Now()
	began := now.Truncate(bucketWidth)
	want := newTracer(now)
	m := &made{}
	for range 1500 {
		s := tracerSpan(r, now)
		if eligible := want.add(s); eligible != s.eligible() {
			t.Fatalf("eligibility of %v according to the tracer: %v", s.raw, eligible)
		} else if eligible {
			m.snapshots = append(m.snapshots, s.snapshot)
		}
	}
	publish(t, c, m.snapshots)
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.stop()
	if !time.Now().Truncate(bucketWidth).Equal(began) {
		return false
	}
	sent := f.payloads(t)
	for _, p := range sent { // a tracer's encoder adds these to its concentrator's payloads
		p.ProcessTags = ""
	}
	mustAgree(t, "groups", sums(t, sent, byBucketAndGroup),
		sums(t, want.Flush(now.UnixNano(), true), byBucketAndGroup))
	return true
}

func byBucketAndGroup(p *pb.ClientStatsPayload, b *pb.ClientStatsBucket, g *pb.ClientGroupedStats) string {
	return byBucket(p, b, g) + " " + byGroup(p, b, g)
}
