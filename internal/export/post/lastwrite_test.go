package post

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/export"
)

// net/http considers a request written while its end is still in a buffer. If the end cannot be
// written then, the destination has not received the request.
func TestBody_LastWriteFails(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1)) // requests the body
	}))
	defer s.Close()
	p := New(Config{Endpoint: endpoint.URL{Network: "tcp", Address: s.Listener.Addr().String()}})
	dial := p.strictTransport.DialContext
	for what, last := range map[string]int{"the header": 0, "the body": 1} {
		p.strictTransport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			conn.(*watchedConn).Conn = &broken{Conn: conn.(*watchedConn).Conn, left: last}
			return conn, nil
		}
		if got := p.Post(t.Context(), nil, make([]byte, 600)); got.Outcome != export.OutcomeNotYet ||
			!errors.Is(got.Err, net.ErrClosed) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// broken is a connection that fails after a number of writes.
type broken struct {
	net.Conn
	left int
}

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, net.ErrClosed
	}
	return b.Conn.Write(p)
}
