package checkclient

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// noon is the clock of tests that compare output. It is one second after the start of a bucket.
var noon = time.Unix(1_800_000_001, 0)

// buffer is a checker's output. It is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func configOf(out io.Writer) Config {
	return Config{
		Out: out, PerSecond: 1000, Now: func() time.Time {
			return noon
		}, Version: "spanstatsd 1.0.0", Interval: 10 * time.Second,
		Features: wire.Features{Stats: true, PeerTags: []string{"db.name"}, SpanKinds: []string{"client"}},
	}
}

// serving is a checker that listens on a socket.
type serving struct {
	path string
	stop context.CancelFunc
	out  *buffer
	done chan error
}

func serve(t *testing.T, connections int, change func(*Config)) *serving {
	t.Helper()
	s := &serving{path: filepath.Join(t.TempDir(), "s"), out: &buffer{}, done: make(chan error, 1)}
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	config := configOf(s.out)
	if change != nil {
		change(&config)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	t.Cleanup(s.stop)
	go func() { s.done <- New(config).Serve(ctx, listener, connections) }()
	return s
}

// wait returns all output, and the verdict.
func (s *serving) wait(t *testing.T) (string, error) {
	t.Helper()
	select {
	case err := <-s.done:
		return s.out.String(), err
	case <-time.After(time.Minute):
		t.Fatalf("waited for a minute in vain for the end of the check; so far:\n%s", s.out)
		return "", nil
	}
}

// send connects, writes the frames, closes its writing end, and reads the response.
func (s *serving) send(t *testing.T, frames ...[]byte) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(bytes.Join(frames, nil)); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
}

func hello() []byte {
	return wire.AppendHello(nil,
		&wire.Hello{
			Version: 1, Client: "example/1.0",
			Origin: span.Origin{Env: "prod", Service: "shop", Lang: "python"},
		})
}

func keyOf(k span.Key) []byte { return wire.AppendKey(nil, &k) }

func webKey() []byte {
	return keyOf(span.Key{
		Service: "shop", Operation: "http.request", Resource: "GET /cart", Type: "web",
		Kind: "server", TraceRoot: span.TraceRootTrue, HTTPStatus: 200, HTTPMethod: "GET",
	})
}

// batch returns a spans message with one snapshot per key.
func batch(keys ...[]byte) []byte {
	b := wire.BeginSpans(nil)
	for _, key := range keys {
		b = wire.AppendWhole(b, key, 12345678, noon.UnixNano()-1e9, span.TopLevel, 1)
	}
	wire.EndSpans(b, 0, len(keys))
	return b
}

func define(number uint32, key []byte) []byte {
	b := wire.AppendDefinition(wire.BeginDefine(nil), number, key)
	wire.EndDefine(b, 0, 1)
	return b
}

func numbered(numbers ...uint32) []byte {
	b := wire.BeginSpans(nil)
	for _, number := range numbers {
		b = wire.AppendNumbered(b, number, 250, noon.UnixNano()-1e9, span.Error|span.TopLevel, 2.5)
	}
	wire.EndSpans(b, 0, len(numbers))
	return b
}

// framed returns a message with its length before it.
func framed(message ...byte) []byte {
	return append([]byte{0, 0, byte(len(message) >> 8), byte(len(message))}, message...)
}
