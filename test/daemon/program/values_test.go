package program

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// tokenReceiver receives OTLP metrics of deltas, and adds up the tokens in them.
type tokenReceiver struct {
	*httptest.Server
	mu             sync.Mutex
	tokens, values uint64
}

func startTokenReceiver(t *testing.T) *tokenReceiver {
	t.Helper()
	r := &tokenReceiver{}
	r.Server = httptest.NewServer(collector.Handler(r.receive))
	t.Cleanup(r.Close)
	return r
}

func (r *tokenReceiver) receive(request collector.Request) (status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, metric := range request.Metrics() {
		if metric.Name != "gen_ai.client.token.usage" {
			continue
		}
		for _, point := range metric.Points {
			r.tokens += uint64(point.Sum)
			r.values += point.Count
		}
	}
	return http.StatusOK
}

// received returns the received tokens, and the number of values that they are the sum of.
func (r *tokenReceiver) received() (tokens, values uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tokens, r.values
}

// sendTokens sends requests with the tokens of ten calls of a model each, and returns their sum and the number of values.
func sendTokens(t *testing.T, rnd *rand.Rand, to *exporter, requests int) (tokens, values uint64) {
	t.Helper()
	for range requests {
		var spans []otlptest.Span
		for range 10 {
			now := uint64(time.Now().UnixNano())
			input, output := rnd.IntN(100_000), rnd.IntN(4_000)
			tokens += uint64(input + output)
			values += 2
			spans = append(spans, otlptest.Span{
				Trace: rnd.Uint64(), ID: rnd.Uint64(), Name: "chat", Kind: spantable.KindClient, Start: now - 1000, End: now,
				Attributes: []otlptest.Attribute{
					{"gen_ai.operation.name", "chat"},
					{"gen_ai.request.model", fmt.Sprint("model-", rnd.IntN(3))},
					{"gen_ai.usage.input_tokens", input},
					{"gen_ai.usage.output_tokens", output},
				},
			})
		}
		if err := to.post(t.Context(), otlptest.SDKRequest(spans...)); err != nil {
			t.Fatal(err)
		}
	}
	return tokens, values
}

// TestKill_TokensAreInLedger kills a daemon after its tokens were delivered, kills the next one before it exports
// anything, and shuts down the last one gracefully. The receiver has the tokens of the first and the last one, to the
// token, and the values of the second are reported as lost, to the value.
func TestKill_TokensAreInLedger(t *testing.T) {
	dir := sockets(t)
	receiver := startTokenReceiver(t)
	socket := filepath.Join(dir, "o")
	start := func(interval string) *process {
		return daemonProcess(t, "off", filepath.Join(dir, "s"), "--otlp-socket", socket, "--measure", "gen_ai",
			"--otlp-metrics-endpoint", receiver.URL, "--flush-interval", interval)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	sdk := &exporter{network: "unix", address: socket, transport: &http.Transport{}}
	kill := func(p *process) {
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.exit()
	}
	first := start("1s")
	tokens, values := sendTokens(t, rnd, sdk, 30)
	eventually.True(t, "all tokens are delivered, and settled", func() bool {
		_, received := receiver.received()
		return received == values &&
			metric(first.get("/metrics"), `spanstatsd_values_pending{destination="otlp"}`) == 0
	})
	kill(first)

	awaitStartOfInterval()
	second := start("10s")
	_, lostValues := sendTokens(t, rnd, sdk, 20)
	lostValues += lostValues / 2 // each span also has a duration
	kill(second)

	last := start("1s")
	for reason, want := range map[string]float64{"lost": float64(lostValues), "ambiguous": 0} {
		name := `spanstatsd_values_lost_to_crashes_total{reason="` + reason + `"}`
		eventually.True(t, fmt.Sprintf("%s is %g", name, want),
			func() bool { return metric(last.get("/metrics"), name) == want })
	}
	moreTokens, moreValues := sendTokens(t, rnd, sdk, 30)
	if err := last.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	last.exit()
	gotTokens, gotValues := receiver.received()
	if gotTokens != tokens+moreTokens || gotValues != values+moreValues {
		t.Errorf("%d tokens in %d values, want %d in %d", gotTokens, gotValues, tokens+moreTokens, values+moreValues)
	}
}
