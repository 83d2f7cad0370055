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

// front is a proxy before the agent, on a socket of its own. It keeps what
// passes, and what a test puts into trouble or rewrite happens to it.
type front struct {
	socket string
	server *http.Server
	agent  http.RoundTripper

	mu       sync.Mutex
	requests []request
	trouble  trouble
}

// request is one request as it was written.
type request struct {
	*http.Request
	body []byte
}

// trouble is what befalls a request. The zero value is none.
type trouble int

const (
	none       trouble = iota
	cutBefore          // the connection ends, and the agent hears nothing
	cutAfter           // the agent counts, and its answer is lost
	unreadable         // the agent counts, and what comes back is not HTTP
	overloaded         // 503, and the agent hears nothing
	absent             // 404 to everything, as an agent older than statistics
	unlisted           // 404 to payloads, and /info does not name the endpoint
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

// befall has all payloads meet with a trouble from now on.
func (f *front) befall(what trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = what
}

// posted is the payloads that came by, whatever befell them.
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

// info is what the agent says of itself, with the endpoint or without.
func (f *front) info(w http.ResponseWriter, r *http.Request, what trouble) {
	answer := f.forward(r, nil)
	if what == unlisted {
		answer.body = bytes.ReplaceAll(answer.body, []byte("/v0.6/stats"), []byte("/v0.5/stats"))
	}
	answer.replay(w)
}

// answer is the agent's.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// forward asks the agent and reads all that it says.
func (f *front) forward(r *http.Request, body []byte) answer {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", "agent", ""
	out.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := f.agent.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler) // the agent is away, and so are we
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

// place is a directory whose sockets have short paths.
type place string

func (p place) path(name string) string { return filepath.Join(string(p), name) }
