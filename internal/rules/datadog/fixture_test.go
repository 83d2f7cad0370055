package datadog_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// agentPeerTags has as many tags as the agent's default.
var agentPeerTags = []string{
	"_dd.base_service", "active_record.db.vendor", "amqp.destination", "amqp.exchange", "amqp.queue",
	"aws.queue.name", "aws.s3.bucket", "bucketname", "cassandra.keyspace", "db.cassandra.contact.points",
	"db.couchbase.seed.nodes", "db.hostname", "db.instance", "db.name", "db.namespace", "db.system",
	"db.system.name", "db.type", "dns.hostname", "grpc.host", "hostname", "http.host", "http.server_name",
	"messaging.destination", "messaging.destination.name", "messaging.kafka.bootstrap.servers",
	"messaging.rabbitmq.exchange", "messaging.system", "mongodb.db", "msmq.queue.path", "net.peer.name",
	"network.destination.ip", "network.destination.name", "out.host", "peer.hostname", "peer.service",
	"queuename", "rpc.service", "rpc.system", "sequel.db.vendor", "server.address", "streamname",
	"tablename", "topicname",
}

func policyOf(t testing.TB) *datadog.Policy {
	t.Helper()
	w, ok := datadog.NewPolicy(agentPeerTags, []string{"client", "consumer", "producer", "server"}, nil,
		datadog.Labels{})
	if !ok {
		t.Fatal("the agent's default policy are too many")
	}
	return w
}

// tracersPolicy returns a policy with the tracers' labels, and with additional tags that every span
// has.
func tracersPolicy(t testing.TB) *datadog.Policy {
	t.Helper()
	p, ok := datadog.NewPolicy(agentPeerTags, []string{"client", "consumer", "producer", "server"}, nil,
		datadog.Labels{
			OfTracer: true, AdditionalTags: []string{"component", "language"},
			RenamesResources: true,
		})
	if !ok {
		t.Fatal("refused")
	}
	return p
}

type spanV04 struct {
	Service  string             `msgpack:"service"`
	Name     string             `msgpack:"name"`
	Resource string             `msgpack:"resource"`
	TraceID  uint64             `msgpack:"trace_id"`
	SpanID   uint64             `msgpack:"span_id"`
	ParentID uint64             `msgpack:"parent_id"`
	Start    int64              `msgpack:"start"`
	Duration int64              `msgpack:"duration"`
	Error    int32              `msgpack:"error"`
	Meta     map[string]string  `msgpack:"meta"`
	Metrics  map[string]float64 `msgpack:"metrics"`
	Type     string             `msgpack:"type"`
}

// webTraces returns requests to a web application like those of tracers: half of the spans are
// server spans, a quarter client spans with three peer tags, and a quarter internal, some of them
// measured. There are 64 keys, and every other trace is unsampled.
func webTraces(traces int) (all [][]spanV04) {
	start := time.Now().Add(-time.Second).UnixNano()
	for i := range traces {
		key := i % 16
		meta := func(kind string, more ...string) map[string]string {
			m := map[string]string{
				"span.kind":  kind,
				"component":  "net/http",
				"language":   "go",
				"env":        "prod",
				"version":    "1.4.2",
				"runtime-id": "6ad3f3ae-7d1c-4d1b-8e9d-3a0a5fd0a1f2", "_dd.p.tid": "66f0a9b300000000",
			}
			for at := 0; at < len(more); at += 2 {
				m[more[at]] = more[at+1]
			}
			return m
		}
		metrics := map[string]float64{
			"_dd.top_level": 1, "_sampling_priority_v1": float64(1 - i%2),
			"process_id": 4711, "_dd.agent_psr": 1,
		}
		root := spanV04{
			Service:  fmt.Sprint("shop-", key%4),
			Name:     "http.request",
			Resource: fmt.Sprint("GET /route/", key),
			Type:     "web",
			TraceID:  uint64(i + 1), SpanID: 10, Start: start, Duration: int64(1e6 + i*1000),
			Meta: meta("server",
				"http.method", "GET", "http.status_code", "200", "http.url",
				"http://shop.example.com/route?id=7", "http.useragent", "a browser of some length/5.0"),
			Metrics: metrics,
		}
		second := root
		second.SpanID, second.ParentID, second.Name, second.Metrics = 11, 10, "grpc.server", map[string]float64{"_dd.measured": 1}
		client := root
		client.SpanID, client.ParentID, client.Name, client.Service, client.Type = 12, 11, "postgres.query", "shop-db", "db"
		client.Meta = meta("client", "out.host", "db.example.com", "db.name", "orders", "db.system",
			"postgresql", "db.statement", "SELECT * FROM orders WHERE id = ?")
		client.Metrics = map[string]float64{"network.destination.port": 5432, "_dd.measured": 1}
		inner := root
		inner.SpanID, inner.ParentID, inner.Name, inner.Type = 13, 11, "render", ""
		inner.Meta, inner.Metrics = meta("internal"), map[string]float64{"_dd.measured": float64(i % 2)}
		all = append(all, []spanV04{root, second, client, inner})
	}
	return all
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	body, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func bodyV04(t testing.TB, traces int) []byte { return encode(t, webTraces(traces)) }

func bodyV05(t testing.TB, traces int) []byte {
	numbers := map[string]int{"": 0}
	dict := []string{""}
	number := func(s string) int {
		n, ok := numbers[s]
		if !ok {
			n = len(dict)
			numbers[s] = n
			dict = append(dict, s)
		}
		return n
	}
	var all []any
	for _, trace := range webTraces(traces) {
		var spans []any
		for _, s := range trace {
			meta, metrics := map[int]int{}, map[int]float64{}
			for k, v := range s.Meta {
				meta[number(k)] = number(v)
			}
			for k, v := range s.Metrics {
				metrics[number(k)] = v
			}
			spans = append(spans, []any{
				number(s.Service), number(s.Name), number(s.Resource), s.TraceID, s.SpanID, s.ParentID,
				s.Start, s.Duration, s.Error, meta, metrics, number(s.Type),
			})
		}
		all = append(all, spans)
	}
	return encode(t, []any{dict, all})
}

// streamedV1 writes a string at its first use, and its number at later ones.
type streamedV1 map[string]int

func (s streamedV1) of(text string) any {
	if n, ok := s[text]; ok {
		return n
	}
	s[text] = len(s)
	return text
}

// ordered is a map whose pairs are encoded in the given order.
type ordered []any

func (o ordered) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeMapLen(len(o) / 2); err != nil {
		return err
	}
	for _, v := range o {
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

func bodyV1(t testing.TB, traces int) []byte {
	s := streamedV1{"": 0}
	lang, env := s.of("go"), s.of("prod")
	var chunks []any
	for _, trace := range webTraces(traces) {
		var spans []any
		for _, span := range trace {
			kinds := map[string]int{"internal": 1, "server": 2, "client": 3}
			service, name, resource := s.of(span.Service), s.of(span.Name), s.of(span.Resource)
			var attributes []any
			for k, v := range span.Meta {
				attributes = append(attributes, s.of(k), 1, s.of(v))
			}
			for k, v := range span.Metrics {
				attributes = append(attributes, s.of(k), 3, v)
			}
			spans = append(spans, ordered{
				1, service, 2, name, 3, resource, 4, span.SpanID, 5, span.ParentID, 6, uint64(span.Start), 7,
				uint64(span.Duration),
				8, false, 9, attributes, 10, s.of(span.Type), 16, kinds[span.Meta["span.kind"]],
			})
		}
		chunks = append(chunks, ordered{1, int(trace[0].Metrics["_sampling_priority_v1"]), 4, spans})
	}
	return encode(t, ordered{3, lang, 7, env, 11, chunks})
}

func bodyV07(t testing.TB, traces int) []byte {
	var chunks []any
	for _, trace := range webTraces(traces) {
		chunks = append(chunks, map[string]any{"priority": 1, "origin": "", "spans": trace})
	}
	return encode(t, map[string]any{"language_name": "go", "env": "prod", "chunks": chunks})
}

var examples = []struct {
	name   string
	format decode.Format
	body   func(testing.TB, int) []byte
}{
	{"v0.4", decode.FormatV04, bodyV04},
	{"v0.5", decode.FormatV05, bodyV05},
	{"v0.7", decode.FormatV07, bodyV07},
	{"v1.0", decode.FormatV1, bodyV1},
}

// counted is a counted span, with the base service of its batch and its key in the native protocol.
// The key is empty if the span is ignored.
type counted struct {
	span.Snapshot
	base, key string
}

// keyByFingerprint contains the keys of all spans of all tests, by fingerprint.
var keyByFingerprint sync.Map

// countedBy returns the spans of the last body. It fails if a weight is invalid in the native
// protocol, or if spans with equal fingerprints have different keys.
func countedBy(t testing.TB, c *datadog.Counter) (all []counted) {
	t.Helper()
	for base, batch := range c.Batches {
		for i := range batch.Snapshots {
			s := &batch.Snapshots[i]
			if !wire.ValidWeight(s.Weight) {
				t.Fatal(s.Weight)
			}
			one := counted{*s, base, ""}
			fingerprint := string(batch.FingerprintOf(s))
			if s.Flags&span.Ignored == 0 {
				one.key = string(wire.AppendKey(nil, batch.Labeler.Label(s.Span)))
			} else if fingerprint != "" {
				t.Errorf("an ignored span has the fingerprint %q", fingerprint)
			}
			if fingerprint != "" {
				if other, _ := keyByFingerprint.LoadOrStore(fingerprint, one.key); other != one.key {
					t.Errorf("the fingerprint %q has the keys\n%q and\n%q", fingerprint, other, one.key)
				}
			}
			one.Fingerprint, one.FingerprintEnd = 0, 0 // offsets in the batch
			all = append(all, one)
		}
	}
	return all
}

func countedSpans(t testing.TB, c *datadog.Counter) int {
	t.Helper()
	return len(countedBy(t, c))
}

// same compares the results of two counters for one body.
func same(t testing.TB, one, other *datadog.Counter) {
	t.Helper()
	if a, b := countedBy(t, one), countedBy(t, other); !slices.Equal(a, b) {
		t.Fatalf("%+v\n%+v", a, b)
	}
}
