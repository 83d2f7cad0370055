package stats

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/vmihailenco/msgpack/v5"
)

// The request is like a tracer's: method, path, body and headers.
func TestRequest_LikeTracers(t *testing.T) {
	at := here(t)
	o := startOracle(t, at.path("agent"), nil)
	f := startFront(t, at.path("front"), o.Socket)
	d := startDaemon(t, at.path("spans"), f.url())
	from := origin
	from.EntityID, from.ExternalEnv, from.ObfuscationVersion, from.RuntimeID = "in-7", "it-false,cn-shop",
		"1", "not sent"
	c := d.tracer(from)
	publish(t, c, []client.Snapshot{everyLabel()})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	posted := f.posted()
	if len(posted) != 1 {
		t.Fatalf("%d requests for one origin", len(posted))
	}
	r := posted[0]
	if r.Method != http.MethodPost || r.URL.Path != "/v0.6/stats" || r.ContentLength != int64(len(r.body)) ||
		len(r.TransferEncoding) > 0 {
		t.Errorf("%s %s, %d of %d bytes announced, transfer encoding %v", r.Method, r.URL, r.ContentLength,
			len(r.body), r.TransferEncoding)
	}
	want := map[string]string{
		"Content-Type": "application/msgpack", "Content-Length": strconv.Itoa(len(r.body)),
		"Datadog-Meta-Lang": "go", "Datadog-Meta-Lang-Version": "1.26", "Datadog-Meta-Lang-Interpreter": "gc",
		"Datadog-Meta-Tracer-Version": "2.12.0", "Datadog-Container-Id": "cid-1", "Datadog-Entity-Id": "in-7",
		"Datadog-External-Env": "it-false,cn-shop", "Datadog-Obfuscation-Version": "1",
		"Connection": "close", "Expect": "100-continue", "User-Agent": r.UserAgent(),
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if got := r.Header.Get(name); got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
	if len(r.Header) != len(want) || !strings.HasPrefix(r.UserAgent(), "spanstatsd/") {
		t.Errorf("headers %v", r.Header)
	}
	checkFields(t, r.body)
}

// everyLabel returns a span with all labels.
func everyLabel() client.Snapshot {
	return client.Snapshot{
		Duration: time.Millisecond, End: time.Now(), Error: true, TopLevel: true,
		Key: client.Key{
			Service: "shop", Operation: "http.request", Resource: "GET /cart", Type: "web", Kind: "client",
			TraceRoot: client.TraceRootFalse, HTTPStatus: 200, PeerTags: []string{"db.name:carts"},
			HTTPMethod: "GET", HTTPEndpoint: "/cart", GRPCStatus: "0", ServiceSource: "m", Synthetics: true,
			AdditionalTags: []string{"tenant:a"},
		},
	}
}

// checkFields compares the field names of a payload with those that the agent's own encoder writes. The
// agent ignores unknown fields, so a misspelled name would be lost silently.
func checkFields(t *testing.T, body []byte) {
	t.Helper()
	again, err := decode(t, body).MarshalMsg(nil)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := names(t, body), names(t, again)
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if !theirs[name] {
			t.Errorf("the agent does not know %s", name)
		}
	}
	for name := range theirs {
		if !ours[name] && !leftOut[name] {
			t.Errorf("%s is not sent", name)
		}
	}
}

// leftOut lists the fields that tracers leave to the agent.
var leftOut = map[string]bool{
	"AgentAggregation": true, "ContainerID": true, "Tags": true, "ImageTag": true, "ProcessTagsHash": true,
	"Stats.AgentTimeShift": true, "Stats.Stats.DBType": true, "Stats.Stats.SpanDerivedPrimaryTags": true,
}

// names returns the paths of all fields.
func names(t *testing.T, body []byte) map[string]bool {
	t.Helper()
	var value map[string]any
	if err := msgpack.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, inner := range v {
				all[path+name] = true
				walk(path+name+".", inner)
			}
		case []any:
			for _, inner := range v {
				walk(path, inner)
			}
		}
	}
	walk("", value)
	return all
}

// The agent's decoder reads the golden payloads in the same way as the daemon's.
func TestGoldenPayloads_ReadByAgent(t *testing.T) {
	files, err := filepath.Glob("../../../internal/export/agent/testdata/*.msgpack")
	if err != nil || len(files) == 0 {
		t.Fatalf("golden payloads: %v, %v", files, err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := payload.Decode(body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if theirs := asOurs(decode(t, body)); !reflect.DeepEqual(theirs, ours) {
			t.Errorf("%s: the agent reads\n%+v\nthe stand-in\n%+v", file, theirs, ours)
		}
		checkFieldsKnown(t, file, body)
	}
}

func checkFieldsKnown(t *testing.T, file string, body []byte) {
	t.Helper()
	bucket := &pb.ClientStatsBucket{Stats: []*pb.ClientGroupedStats{{}}}
	full, err := (&pb.ClientStatsPayload{Stats: []*pb.ClientStatsBucket{bucket}}).MarshalMsg(nil)
	if err != nil {
		t.Fatal(err)
	}
	known := names(t, full)
	for name := range names(t, body) {
		if !known[name] {
			t.Errorf("%s: the agent does not know %s", file, name)
		}
	}
}

// asOurs converts a payload to the type of the fake agent.
func asOurs(p *pb.ClientStatsPayload) *payload.Payload {
	to := &payload.Payload{
		Hostname: p.Hostname, Env: p.Env, Version: p.Version, Lang: p.Lang, TracerVersion: p.TracerVersion,
		RuntimeID: p.RuntimeID, Service: p.Service, GitCommitSha: p.GitCommitSha, ProcessTags: p.ProcessTags,
		Sequence: p.Sequence,
	}
	for _, b := range p.Stats {
		bucket := payload.Bucket{Start: b.Start, Duration: b.Duration}
		for _, g := range b.Stats {
			bucket.Stats = append(bucket.Stats, payload.Group{
				Labels: payload.Labels{
					Service:        g.Service,
					Name:           g.Name,
					Resource:       g.Resource,
					Type:           g.Type,
					SpanKind:       g.SpanKind,
					GRPCStatusCode: g.GRPCStatusCode, HTTPMethod: g.HTTPMethod, HTTPEndpoint: g.HTTPEndpoint,
					ServiceSource:  g.ServiceSource,
					HTTPStatusCode: g.HTTPStatusCode,
					Synthetics:     g.Synthetics,
					IsTraceRoot:    int32(g.IsTraceRoot), PeerTags: g.PeerTags,
					AdditionalMetricTags: g.AdditionalMetricTags,
				}, Hits: g.Hits, Errors: g.Errors, TopLevelHits: g.TopLevelHits, Duration: g.Duration,
				OkSummary: g.OkSummary, ErrorSummary: g.ErrorSummary,
			})
		}
		to.Stats = append(to.Stats, bucket)
	}
	return to
}
