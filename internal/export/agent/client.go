package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
)

// URL is the address of an agent. The zero value means no agent.
type URL = endpoint.URL

// ParseURL parses an agent's URL in the forms of DD_TRACE_AGENT_URL: http://host:port, with 8126 as
// the default port, or unix:///path.
func ParseURL(text string) (URL, error) {
	return endpoint.Form{
		What:    "agent URL (not shown, since it may hold a key)",
		Give:    "give http://host:port or unix:///path/of/socket",
		Schemes: map[string]endpoint.Scheme{"http": {Port: "8126"}},
	}.Parse(text) //nolint:wrapcheck // it says what to do
}

// answers defines the meaning of the agent's status codes. Other errors are permanent.
var answers = post.Answers{
	http.StatusNotFound:        {Outcome: export.OutcomeNotWanted},
	http.StatusRequestTimeout:  {Outcome: export.OutcomeNotYet},
	http.StatusTooManyRequests: {Outcome: export.OutcomeNotYet},
	5:                          {Outcome: export.OutcomeNotYet},
}

// noStatistics is a payload without statistics: an empty map.
var noStatistics = []byte{0x80}

// client makes requests to an agent.
type client interface {
	// deliver makes one attempt to deliver a payload.
	deliver(ctx context.Context, p *export.Payload) post.Answer
	// info reads /info.
	info(ctx context.Context) (info, error)
}

// httpClient makes requests to an agent over HTTP.
type httpClient struct{ poster *post.Poster }

func newHTTPClient(url URL, version string) *httpClient {
	return &httpClient{post.New(post.Config{
		Name: "agent", Endpoint: url, Path: "/v0.6/stats", ContentType: "application/msgpack",
		EmptyBody: noStatistics, Answers: answers, Version: headerText(version),
	})}
}

// deliver sends a payload with the headers of its origin. The agent reads the container only from
// these headers.
func (c *httpClient) deliver(ctx context.Context, p *export.Payload) post.Answer {
	header := http.Header{}
	for name, value := range map[string]string{
		"Datadog-Meta-Lang":             p.Origin.Lang,
		"Datadog-Meta-Lang-Version":     p.Origin.LangVersion,
		"Datadog-Meta-Lang-Interpreter": p.Origin.LangInterpreter,
		"Datadog-Meta-Tracer-Version":   p.Origin.TracerVersion,
		"Datadog-Container-ID":          p.Origin.ContainerID,
		"Datadog-Entity-ID":             p.Origin.EntityID,
		"Datadog-External-Env":          p.Origin.ExternalEnv,
		"Datadog-Obfuscation-Version":   p.Origin.ObfuscationVersion,
	} {
		if value = headerText(value); value != "" {
			header.Set(name, value)
		}
	}
	return c.poster.Post(ctx, header, p.Body)
}

// maxInfoBytes limits the length of /info, which normally has about 4 KB.
const maxInfoBytes = 1 << 20

// info reads /info. An agent without this endpoint is too old to accept statistics; this is not an
// error.
func (c *httpClient) info(ctx context.Context) (info, error) {
	a := c.poster.Get(ctx, "/info", maxInfoBytes+1)
	switch {
	case a.Code == http.StatusNotFound:
		return info{}, nil
	case a.Err != nil:
		return info{}, fmt.Errorf("read agent info: %w", a.Err)
	case len(a.Body) > maxInfoBytes:
		return info{}, errors.New("read agent info: the response exceeds 1 MiB; check that --agent-url is the " +
			"URL of a Datadog agent")
	}
	return parseInfo(a.Body)
}

// headerText removes control characters, which are invalid in headers, so that a newline in a
// tracer's labels does not make its payload impossible to send.
func headerText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s))
}
