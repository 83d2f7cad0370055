package flush

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// agentClient is what the flusher asks of the agent.
type agentClient interface {
	// post offers a payload once.
	post(ctx context.Context, p *payload) attempt
	// info reads what the agent says of itself.
	info(ctx context.Context) (info, error)
}

// httpAgent is the agent behind its HTTP API.
type httpAgent struct {
	url       AgentURL
	userAgent string

	// An agent that has asked for a body once is sent none that it does not ask
	// for. One that never asks, though every server should, is sent it after a
	// second.
	asks        atomic.Bool
	whenAsked   *http.Transport
	afterSecond *http.Transport

	// What answers 417, as an old proxy does, is sent bodies without being asked.
	noExpect atomic.Bool
}

func newHTTPAgent(url AgentURL, version string) *httpAgent {
	return &httpAgent{
		url:       url,
		userAgent: strings.TrimSuffix("spanstatsd/"+headerText(version), "/"),

		whenAsked:   newTransport(url, noExpectTimeout),
		afterSecond: newTransport(url, expectTimeout),
	}
}

// post offers the agent a payload once.
func (h *httpAgent) post(ctx context.Context, p *payload) attempt {
	var body watchedBody
	req, err := h.request(body.trace(ctx), http.MethodPost, "/v0.6/stats")
	if err != nil {
		return attempt{outcome: refused, err: err}
	}
	body.bytes.Reset(p.body)
	req.Body, req.ContentLength = &body, int64(len(p.body))
	req.Header.Set("Content-Type", "application/msgpack")
	if !h.noExpect.Load() {
		req.Header.Set("Expect", "100-continue")
	}
	setOrigin(req.Header, &p.origin)
	transport := h.afterSecond
	if h.asks.Load() {
		transport = h.whenAsked
	}
	resp, err := transport.RoundTrip(req)
	if body.asked.Load() {
		h.asks.Store(true)
	}
	if err != nil {
		if body.sentWhole() {
			return attempt{outcome: unknown, silent: true, err: fmt.Errorf("%w: %w", errNoAnswer, err)}
		}
		return attempt{outcome: notYet, silent: true, err: fmt.Errorf("send payload to %s: %w", h.url, err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusExpectationFailed && h.noExpect.CompareAndSwap(false, true) {
		return h.post(ctx, p)
	}
	a := readAnswer(resp, time.Now())
	if a.refusal != nil {
		a.refusal.Sent = req.Header
	}
	return a
}

func (h *httpAgent) request(ctx context.Context, method, path string) (*http.Request, error) {
	// A body is set by hand: net/http would otherwise learn how to rewind it,
	// and could send it a second time by itself.
	req, err := http.NewRequestWithContext(ctx, method, "http://"+h.url.host()+path, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Close = true
	req.Header.Set("User-Agent", h.userAgent)
	return req, nil
}

// setOrigin says whose statistics these are. The agent takes the container
// only from here, whatever the payload says.
func setOrigin(h http.Header, o *span.Origin) {
	for _, field := range [...]struct{ name, value string }{
		{"Datadog-Meta-Lang", o.Lang},
		{"Datadog-Meta-Lang-Version", o.LangVersion},
		{"Datadog-Meta-Lang-Interpreter", o.LangInterpreter},
		{"Datadog-Meta-Tracer-Version", o.TracerVersion},
		{"Datadog-Container-ID", o.ContainerID},
		{"Datadog-Entity-ID", o.EntityID},
		{"Datadog-External-Env", o.ExternalEnv},
		{"Datadog-Obfuscation-Version", o.ObfuscationVersion},
	} {
		if value := headerText(field.value); value != "" {
			h.Set(field.name, value)
		}
	}
}

// headerText leaves out what may not stand in a header: a tracer's stray
// newline must not make its payload impossible to send.
func headerText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s))
}
