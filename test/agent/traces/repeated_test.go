package traces

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/tinylib/msgp/msgp"
)

// repeatedSpan returns an encoded span whose fields and tags occur once, twice or not at all, in any
// order.
func repeatedSpan(rnd *rand.Rand, now time.Time) []byte {
	text := func(b []byte, key, value string) []byte {
		return msgp.AppendString(msgp.AppendString(b, key), value)
	}
	number := func(b []byte, key string, value int64) []byte {
		return msgp.AppendInt64(msgp.AppendString(b, key), value)
	}
	fields := []func(b []byte) []byte{
		func(b []byte) []byte { return text(b, "service", pick(rnd, "shop", "cart", "")) },
		func(b []byte) []byte { return text(b, "name", pick(rnd, "web.request", "db.query")) },
		func(b []byte) []byte { return text(b, "resource", pick(rnd, "GET /", "GET /a")) },
		func(b []byte) []byte { return text(b, "type", pick(rnd, "web", "db")) },
		func(b []byte) []byte { return number(b, "trace_id", 1) },
		func(b []byte) []byte { return number(b, "span_id", 1+rnd.Int64N(4)) },
		func(b []byte) []byte { return number(b, "parent_id", rnd.Int64N(4)) },
		func(b []byte) []byte { return number(b, "start", now.UnixNano()-rnd.Int64N(1e9)) },
		func(b []byte) []byte { return number(b, "duration", rnd.Int64N(1e9)) },
		func(b []byte) []byte { return number(b, "error", rnd.Int64N(2)) },
		func(b []byte) []byte {
			n := rnd.IntN(4)
			b = msgp.AppendMapHeader(msgp.AppendString(b, "meta"), uint32(n))
			for range n {
				b = text(b, pick(rnd, "span.kind", "http.status_code", "_dd.base_service", "env",
					"_dd.measured"), pick(rnd, "client", "server", "200", "1"))
			}
			return b
		},
		func(b []byte) []byte {
			n := rnd.IntN(4)
			b = msgp.AppendMapHeader(msgp.AppendString(b, "metrics"), uint32(n))
			for range n {
				b = msgp.AppendFloat64(msgp.AppendString(b,
					pick(rnd, "_dd.measured", "http.status_code", "_top_level", "_sample_rate")),
					pick(rnd, 0, 0.5, 1, 404))
			}
			return b
		},
	}
	var written []byte
	n := uint32(0)
	for range 2 {
		rnd.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		for _, field := range fields {
			if rnd.IntN(3) > 0 {
				written = field(written)
				n++
			}
		}
	}
	return append(msgp.AppendMapHeader(nil, n), written...)
}

// TestFields_Repeated checks that the value of a repeated field is the one that counts for the agent, or
// that the body is left to the agent.
func TestFields_Repeated(t *testing.T) {
	o := makeOracle()
	policy := agentPolicy(t, o.conf)
	now := time.Now()
	since := now.Add(-2 * time.Hour)
	for _, format := range []datadog.Format{datadog.FormatV04, datadog.FormatV07} {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(12, uint64(format)))
			c := dd.NewCounter()
			accepted := 0
			for i := range 3_000 {
				spans := 1 + rnd.IntN(3)
				list := msgp.AppendArrayHeader(nil, uint32(spans))
				for range spans {
					list = append(list, repeatedSpan(rnd, now)...)
				}
				body := append([]byte{0x91}, list...)
				if format == datadog.FormatV07 {
					body = msgp.AppendString(msgp.AppendMapHeader(nil, 1), "chunks")
					body = msgp.AppendString(append(body, 0x91, 0x81), "spans")
					body = append(body, list...)
				}
				if c.Count(format, body, "go", false, policy) != nil {
					continue
				}
				accepted++
				expected, refused := o.count(t, format, slices.Clone(body), "go", false, since)
				if refused != nil {
					t.Fatalf("case %d: counted, but the agent rejects it: %v\n%q", i, refused, body)
				}
				if actual := ours(t, c.Batches, "go", since); !maps.Equal(actual, expected) &&
					!ambiguous(actual, expected) {
					t.Fatalf("case %d:\n ours %v\nagent %v\n%q", i, actual, expected, body)
				}
			}
			if accepted < 200 {
				t.Errorf("only %d were accepted: the comparison has little coverage", accepted)
			}
		})
	}
}
