package tracers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fork acts as the agent for a tracer. It forwards each request to the daemon and to an agent without a
// daemon, so that both receive identical requests. It returns the daemon's responses.
type fork struct {
	t       *testing.T
	socket  string
	clients [2]*http.Client
	server  *http.Server
	// asOff makes the requests to the daemon look like those of a tracer without client-computed
	// statistics.
	asOff bool

	mu    sync.Mutex
	paths map[string]int
}

func clientOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
		_ string,
	) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
}

func startFork(t *testing.T, daemon, agent string, asOff bool) *fork {
	f := &fork{
		t: t, asOff: asOff, socket: filepath.Join(t.TempDir(), "fork.sock"), paths: map[string]int{},
		clients: [2]*http.Client{clientOf(daemon), clientOf(agent)},
	}
	listener, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	f.server = &http.Server{Handler: f}
	go f.server.Serve(listener)
	t.Cleanup(func() {
		f.server.Close()
		for _, client := range f.clients {
			client.CloseIdleConnections()
		}
	})
	return f
}

// wait waits for the requests in flight, because a tracer can have its response before the agent
// without a daemon has responded.
func (f *fork) wait() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.server.Shutdown(ctx); err != nil {
		f.t.Errorf("wait for a tracer's requests: %v", err)
	}
}

func (f *fork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Errorf("read a tracer's request: %v", err)
	}
	f.mu.Lock()
	f.paths[r.URL.Path]++
	f.mu.Unlock()
	answered := false
	for i, client := range f.clients {
		hides := f.asOff && i == 0
		if hides && r.URL.Path == "/v0.6/stats" {
			continue
		}
		req, err := http.NewRequest(r.Method, "http://localhost"+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			f.t.Error(err)
			return
		}
		req.Header = r.Header.Clone()
		if hides {
			req.Header.Del("Datadog-Client-Computed-Stats")
		}
		resp, err := client.Do(req)
		if err != nil {
			f.t.Errorf("hand on a request to %s: %v", r.URL.Path, err)
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if !answered {
			answered = true
			for name, values := range resp.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(resp.StatusCode)
			io.Copy(w, resp.Body)
		} else if strings.HasSuffix(r.URL.Path, "/traces") && resp.StatusCode != http.StatusOK {
			f.t.Errorf("%s was answered with %d", r.URL.Path, resp.StatusCode)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// count returns the number of requests to a path.
func (f *fork) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[path]
}

// String lists the requests.
func (f *fork) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.paths)
}
