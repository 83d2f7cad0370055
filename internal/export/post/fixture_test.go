package post_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
)

// server is a destination that handles each request with a body as the test specifies.
type server struct {
	net.Listener
	meets atomic.Pointer[conduct]

	mu      sync.Mutex
	bodies  []int  // length of each body that is not empty, as far as it was read
	expects []bool // by request, whether it had an Expect header
}

// conduct is the behavior of a server after it has read the head of a request.
type conduct struct {
	waits  time.Duration // before anything else
	asks   bool
	leaves leaving
}

// leaving is how a request ends.
type leaving int

const (
	hanging   leaving = iota // never
	answering                // after the body was read
	unread                   // the connection is closed without reading the body
	read                     // the connection is closed after the body was read
)

var (
	hangs     = conduct{}
	takes     = conduct{asks: true, leaves: answering}
	neverAsks = conduct{leaves: answering}
	isSlow    = conduct{asks: true, leaves: answering, waits: shortPatience * 3 / 2}
)

const (
	// shortPatience is a ContinueTimeout that is long enough for a test.
	shortPatience = 100 * time.Millisecond

	small = 600
	large = 12 << 20 // more than any socket buffers
)

// nothing is a body without statistics.
var nothing = []byte{0x80}

// onBoth runs a test with a server on each kind of address.
func onBoth(t *testing.T, first conduct, test func(t *testing.T, s *server, p *post.Poster)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			address := "127.0.0.1:0"
			if network == "unix" {
				address = socketIn(t)
			}
			listener, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			s := &server{Listener: listener}
			s.becomes(first)
			var serving sync.WaitGroup
			serving.Go(func() { s.serve(&serving) })
			t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
			test(t, s, posterTo(endpoint.URL{Network: network, Address: listener.Addr().String()}))
		})
	}
}

func socketIn(t *testing.T) string { return filepath.Join(t.TempDir(), "a.sock") }

func posterTo(e endpoint.URL) *post.Poster {
	return post.New(post.Config{
		Name:            "server",
		Endpoint:        e,
		Path:            "/take",
		ContentType:     "text/plain",
		EmptyBody:       nothing,
		ContinueTimeout: shortPatience,
		Answers: post.Answers{
			404: {Outcome: export.OutcomeNotWanted}, 429: {Outcome: export.OutcomeNotYet, Advice: " (later)"},
			5: {Outcome: export.OutcomeNotYet},
		},
	})
}

func (s *server) becomes(c conduct) { s.meets.Store(&c) }

func (s *server) serve(serving *sync.WaitGroup) {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer conn.Close()
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				s.meet(conn, r)
			}
		})
	}
}

func (s *server) meet(conn net.Conn, r *http.Request) {
	const accepted = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	if r.Method == http.MethodGet {
		fmt.Fprint(conn, accepted)
		return
	}
	does := *s.meets.Load()
	s.mu.Lock()
	s.expects = append(s.expects, r.Header.Get("Expect") != "")
	s.mu.Unlock()
	time.Sleep(does.waits)
	if does.leaves == unread {
		return
	}
	if does.asks {
		fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	n, err := io.Copy(io.Discard, r.Body) // if the body was not requested: until the client disconnects
	s.mu.Lock()
	if n > 0 {
		s.bodies = append(s.bodies, int(n))
	}
	s.mu.Unlock()
	switch {
	case does.leaves == read:
	case does.leaves == answering && err == nil:
		fmt.Fprint(conn, accepted)
	default:
		_, _ = io.Copy(io.Discard, conn)
	}
}

// payloads returns the number of bodies that were read, without probes.
func (s *server) payloads() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, length := range s.bodies {
		if length > len(nothing) {
			n++
		}
	}
	return n
}

// mustPost posts a body and expects the given outcome. An accepted attempt has as much time as it
// needs; other attempts end early.
func mustPost(t *testing.T, p *post.Poster, want export.Outcome) {
	t.Helper()
	timeout := 6 * shortPatience
	if want == export.OutcomeAccepted {
		timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if got := p.Post(ctx, nil, make([]byte, small)); got.Outcome != want {
		t.Errorf("%+v, want export.Outcome %d", got, want)
	}
}
