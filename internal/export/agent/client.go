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
		Hint:    "use http://host:port or unix:///path/of/socket",
		Schemes: map[string]endpoint.Scheme{"http": {Port: "8126"}},
	}.Parse(text) //nolint:wrapcheck // the error says already which URLs are valid
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
	// readInfo requests and parses /info.
	readInfo(ctx context.Context) (agentInfo, error)
}

// httpClient makes requests to an agent over HTTP.
type httpClient struct{ poster *post.Poster }

func newHTTPClient(url URL, version string) *httpClient {
	return &httpClient{post.New(post.Config{
		Name: "agent", Endpoint: url, Path: "/v0.6/stats", ContentType: "application/msgpack",
		EmptyBody: noStatistics, Answers: answers, Version: headerText(version),
	})}
}

// deliver sends a payload to the agent in one POST request, and returns the result. The headers of the request
// describe the process that the statistics are from: its language, tracer version and container. Empty headers
// are omitted.
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
		text := headerText(value)
		if text != "" {
			header.Set(name, text)
		}
	}
	return c.poster.Post(ctx, header, p.Body)
}

// maxInfoBytes limits the length of /info, which normally has about 4 KB.
const maxInfoBytes = 1 << 20

// readInfo requests the agent's /info and parses the response. If the agent responds with 404, it is too old to
// accept statistics: readInfo then returns the zero agentInfo without an error.
func (c *httpClient) readInfo(ctx context.Context) (agentInfo, error) {
	response := c.poster.Get(ctx, "/info", maxInfoBytes+1)
	switch {
	case response.Code == http.StatusNotFound:
		return agentInfo{}, nil
	case response.Err != nil:
		return agentInfo{}, fmt.Errorf("read agent info: %w", response.Err)
	case len(response.Body) > maxInfoBytes:
		return agentInfo{}, errors.New("read agent info: the response exceeds 1 MiB; check that --agent-url is the " +
			"URL of a Datadog agent")
	}
	return parseInfo(response.Body)
}

// headerText returns s without control characters such as newlines, and without leading and trailing spaces.
// With a control character in a header, net/http would refuse the request.
func headerText(s string) string {
	const deleteRune = -1
	printable := strings.Map(func(r rune) rune {
		isControl := r < ' ' || r == 0x7f
		if isControl {
			return deleteRune
		}
		return r
	}, s)
	return strings.TrimSpace(printable)
}
