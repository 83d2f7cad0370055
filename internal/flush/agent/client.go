package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/request"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// httpAgent is the agent behind its HTTP API. How it takes a body is in ask.go.
type httpAgent struct {
	url       URL
	userAgent string

	manner  atomicManner
	probing chan struct{} // holds a token while a probe is under way

	patience  time.Duration   // within which an agent that is well asks for a body
	whenAsked *http.Transport // sends no body that was not asked for
	unasked   *http.Transport // sends it all the same when that time is over
}

func newHTTPAgent(url URL, version string, patience time.Duration) *httpAgent {
	return &httpAgent{
		url:       url,
		userAgent: strings.TrimSuffix("spanstatsd/"+headerText(version), "/"),

		probing:   make(chan struct{}, 1),
		patience:  patience,
		whenAsked: newTransport(url, forEver),
		unasked:   newTransport(url, patience),
	}
}

// offer makes one request with a payload, in the manner that the agent is known for. An
// agent in doubt has little time to ask for the body, then the payload is withdrawn.
func (h *httpAgent) offer(ctx context.Context, p *flush.Payload, known manner) attempt {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var body request.Body
	req, err := h.request(body.Trace(ctx), http.MethodPost, "/v0.6/stats")
	if err != nil {
		return failed(flush.OutcomeRefused, false, err)
	}
	body.Reset(p.Body)
	req.Body, req.ContentLength = &body, int64(len(p.Body))
	req.Header.Set("Content-Type", "application/msgpack")
	setOrigin(req.Header, &p.Origin)
	if known != asksNever {
		req.Header.Set("Expect", "100-continue")
	}
	if known == inDoubt {
		impatience := time.AfterFunc(h.patience, func() {
			if body.Withdraw() {
				leave()
			}
		})
		defer impatience.Stop()
	}
	resp, err := h.whenAsked.RoundTrip(req)
	if body.Asked() {
		h.manner.store(asksAlways)
	}
	if err != nil {
		return h.unanswered(&body, err)
	}
	defer resp.Body.Close()
	a := readAnswer(resp, time.Now())
	if a.refusal != nil {
		a.refusal.Sent = req.Header
	}
	return a
}

// unanswered is what a request means that failed.
func (h *httpAgent) unanswered(body *request.Body, err error) attempt {
	switch {
	case body.Withdrawn():
		return failed(flush.OutcomeNotYet, true, fmt.Errorf("send payload to %s: %w", h.url, errNotAsked))
	case body.SentWhole():
		return failed(flush.OutcomeUnknown, true, fmt.Errorf("%w: %w", errNoAnswer, err))
	}
	return failed(flush.OutcomeNotYet, true, fmt.Errorf("send payload to %s: %w", h.url, err))
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

const (
	askPatience = time.Second    // within which an agent that is well asks for a body
	forEver     = 24 * time.Hour // longer than any request may take
)

// newTransport dials the agent and nothing else, anew for each request. An idle
// connection can be closed by the agent at the moment when it is used again;
// the request is then written whole to nobody, which cannot be told from one
// that was counted. A connection for each request is cheap here: there is one
// request an origin in ten seconds, and the agent is on the same host.
func newTransport(url URL, patience time.Duration) *http.Transport {
	var dialer net.Dialer
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, url.Network, url.Address)
			if err != nil {
				return nil, err
			}
			return request.Watch(conn), nil
		},
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ExpectContinueTimeout:  patience,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
