package stats

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
)

// front is a proxy in front of the agent, on its own socket. It records requests, and modifies or
// disrupts them if a test asks for that.
type front struct {
	socket string
	server *http.Server
	agent  http.RoundTripper

	mu       sync.Mutex
	requests []request
	trouble  trouble
}

// request is a request as sent by the daemon.
type request struct {
	*http.Request
	body []byte
}

// trouble is a disruption of a request. The zero value means none.
type trouble int

const (
	none       trouble = iota
	cutBefore          // the connection is closed before the agent sees the request
	cutAfter           // the agent counts the request, and its response is lost
	unreadable         // the agent counts the request, and the response is not HTTP
	overloaded         // 503, and the agent does not see the request
	absent             // 404 for everything, as in agents without statistics
	unlisted           // 404 for payloads, and /info does not list the endpoint
)

func startFront(t *testing.T, socket, agent string) *front {
	t.Helper()
	f := &front{socket: socket}
	f.agent = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", agent)
		},
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	f.server = &http.Server{Handler: f}
	go func() { _ = f.server.Serve(listener) }()
	t.Cleanup(func() { _ = f.server.Close() })
	return f
}

func (f *front) url() string { return "unix://" + f.socket }

// disrupt sets the disruption of all later payloads.
func (f *front) disrupt(t trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = t
}

// posted returns the recorded payloads, disrupted or not.
func (f *front) posted() (payloads []request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.URL.Path == "/v0.6/stats" {
			payloads = append(payloads, r)
		}
	}
	return payloads
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f.mu.Lock()
	f.requests = append(f.requests, request{r, body})
	what := f.trouble
	f.mu.Unlock()
	if r.URL.Path == "/info" && what != absent {
		f.info(w, r, what)
		return
	}
	switch what {
	case cutBefore:
		panic(http.ErrAbortHandler)
	case overloaded:
		http.Error(w, "too busy", http.StatusServiceUnavailable)
		return
	case absent, unlisted:
		http.NotFound(w, r)
		return
	}
	answer := f.forward(r, body)
	switch what {
	case cutAfter:
		panic(http.ErrAbortHandler)
	case unreadable:
		sayNonsense(w)
	default:
		answer.replay(w)
	}
}

// info responds with the agent's features, with or without the endpoint.
func (f *front) info(w http.ResponseWriter, r *http.Request, what trouble) {
	answer := f.forward(r, nil)
	if what == unlisted {
		answer.body = bytes.ReplaceAll(answer.body, []byte("/v0.6/stats"), []byte("/v0.5/stats"))
	}
	answer.replay(w)
}

// answer is a response of the agent.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// forward sends a request to the agent and reads the complete response.
func (f *front) forward(r *http.Request, body []byte) answer {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", "agent", ""
	out.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := f.agent.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler) // the agent is unreachable, so close the connection as well
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return answer{resp.StatusCode, resp.Header, said}
}

func (a answer) replay(w http.ResponseWriter) {
	for name, values := range a.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func sayNonsense(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic("BUG: hijack: " + err.Error())
	}
	_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n"))
	_ = conn.Close()
}

// place is a directory whose path is short enough for sockets.
type place string

func (p place) path(name string) string { return filepath.Join(string(p), name) }
