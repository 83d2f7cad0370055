package stats

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
)

// rounds returns the number of comparisons: ROUNDS, or 1.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil {
		return n
	}
	return 1
}

// TestAgent_SameStatistics checks that the client and the daemon turn random traces into the same
// statistics as the agent's own concentrator, also with an additional OTLP destination, for which
// durations are counted in finer bins. The OTLP histograms are compared with the spans.
func TestAgent_SameStatistics(t *testing.T) {
	for range rounds() {
		seed := rand.Uint64()
		for _, withOTLP := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, OTLP %t", seed, withOTLP), func(t *testing.T) {
				for !compared(t, rand.New(rand.NewPCG(seed, 1)), withOTLP) {
					t.Log("a bucket ended in the meantime; trying again")
				}
			})
		}
	}
}

// compared sends the same spans on both paths and compares the results. It returns false if a bucket
// ended in the meantime, because then different spans are late or early on each path.
func compared(t *testing.T, r *rand.Rand, withOTLP bool) bool {
	began := time.Now().Truncate(bucketWidth) // before the agent starts, whose oldest bucket depends on its start time
	at := here(t)
	o := startOracle(t, at.path("agent"), nil)
	f := startFront(t, at.path("front"), o.Socket)
	flags := []string{
		"--max-aggregates=65536",
		"--cardinality-limit=resource=4096,service=4096,operation=4096,type=4096,span_kind=4096",
	}
	beside := startReceiver(t)
	if withOTLP {
		flags = append(flags, "--otlp-metrics-endpoint="+beside.URL(), "--otlp-dialect=datadog")
	}
	d := startDaemon(t, at.path("spans"), f.url(), flags...)
	c := d.tracer(origin)
	m := makeSpans(r, 500, time.Now())
	o.trace(m.traces)
	publish(t, c, m.snapshots)
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.stop()
	o.Stop()
	if !time.Now().Truncate(bucketWidth).Equal(began) {
		return false
	}
	want := o.Computed.Payloads()
	mustAgree(t, "groups", sums(t, o.Received.Payloads(), byGroup), sums(t, want, byGroup))
	mustAgree(t, "buckets", sums(t, f.payloads(t), byBucket), sums(t, want, byBucket))
	if withOTLP {
		beside.mustHave(t, m.snapshots)
	}
	t.Logf("%d spans, %d of them eligible", m.spans, len(m.snapshots))
	return true
}

// payloads returns the recorded payloads, decoded by the agent's decoder.
func (f *front) payloads(t *testing.T) (decoded []*pb.ClientStatsPayload) {
	t.Helper()
	for _, r := range f.posted() {
		decoded = append(decoded, decode(t, r.body))
	}
	return decoded
}

func decode(t *testing.T, body []byte) *pb.ClientStatsPayload {
	t.Helper()
	var p pb.ClientStatsPayload
	rest, err := p.UnmarshalMsg(body)
	if err != nil || len(rest) > 0 {
		t.Fatalf("decode payload: %v, %d bytes left", err, len(rest))
	}
	return &p
}

// trace sends traces to the agent like a tracer without client-computed statistics.
func (o *oracle) trace(traces pb.Traces) {
	o.t.Helper()
	body, err := traces.MarshalMsg(nil)
	if err != nil {
		o.t.Fatal(err)
	}
	post, err := http.NewRequest(http.MethodPut, "http://agent/v0.4/traces", bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/msgpack", "X-Datadog-Trace-Count": strconv.Itoa(len(traces)),
		"Datadog-Meta-Lang": origin.Lang, "Datadog-Meta-Lang-Version": origin.LangVersion,
		"Datadog-Meta-Lang-Interpreter": origin.LangInterpreter,
		"Datadog-Meta-Tracer-Version":   origin.TracerVersion,
		"Datadog-Container-ID":          origin.ContainerID, "X-Datadog-Process-Tags": origin.ProcessTags,
		"Datadog-Send-Real-Http-Status": "true",
	} {
		post.Header.Set(name, value)
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", o.Socket)
		},
	}
	resp, err := transport.RoundTrip(post)
	if err != nil {
		o.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		o.t.Fatalf("response of the agent to traces: %s", resp.Status)
	}
}
