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

	mu         sync.Mutex
	requests   []request
	disruption disruption
}

// request is a request as sent by the daemon.
type request struct {
	*http.Request
	body []byte
}

// disruption is a disruption of a request. The zero value means none.
type disruption int

const (
	none       disruption = iota
	cutBefore             // the connection is closed before the agent sees the request
	cutAfter              // the agent counts the request, and its response is lost
	unreadable            // the agent counts the request, and the response is not HTTP
	overloaded            // 503, and the agent does not see the request
	absent                // 404 for everything, as in agents without statistics
	unlisted              // 404 for payloads, and /info does not list the endpoint
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
func (f *front) disrupt(t disruption) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disruption = t
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
	active := f.disruption
	f.mu.Unlock()
	if r.URL.Path == "/info" && active != absent {
		f.info(w, r, active)
		return
	}
	switch active {
	case cutBefore:
		panic(http.ErrAbortHandler)
	case overloaded:
		http.Error(w, "too busy", http.StatusServiceUnavailable)
		return
	case absent, unlisted:
		http.NotFound(w, r)
		return
	}
	response := f.forward(r, body)
	switch active {
	case cutAfter:
		panic(http.ErrAbortHandler)
	case unreadable:
		respondNonsense(w)
	default:
		response.replay(w)
	}
}

// info responds with the agent's features, with or without the endpoint.
func (f *front) info(w http.ResponseWriter, r *http.Request, active disruption) {
	response := f.forward(r, nil)
	if active == unlisted {
		response.body = bytes.ReplaceAll(response.body, []byte("/v0.6/stats"), []byte("/v0.5/stats"))
	}
	response.replay(w)
}

// response is a response of the agent.
type response struct {
	status int
	header http.Header
	body   []byte
}

// forward sends a request to the agent and reads the complete response.
func (f *front) forward(r *http.Request, body []byte) response {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", "agent", ""
	out.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := f.agent.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler) // the agent is unreachable, so close the connection as well
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return response{resp.StatusCode, resp.Header, text}
}

func (a response) replay(w http.ResponseWriter) {
	for name, values := range a.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func respondNonsense(w http.ResponseWriter) {
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
