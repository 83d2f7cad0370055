package door

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Dial makes connections for a transport.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Behind is who stands behind a door and is handed what came: an agent or a collector. Its zero
// value is nobody.
type Behind struct {
	Network, Address string        // in the form that a dialler takes
	Most             int           // connections at a time, 0 for any number
	Patience         time.Duration // how long it may take to answer, 0 for any time
	// Transport makes what carries requests in another way than by HTTP/1.1 without TLS, from what
	// makes connections; nil where none is needed. Its requests have the URL Base and the target.
	Transport func(Dial) http.RoundTripper
	Base      string
	// Reach connects to it; nil: by Network and Address.
	Reach func(context.Context) (net.Conn, error)
}

// dialTimeout is how long who is behind may take to accept a connection.
const dialTimeout = 5 * time.Second

// Host is its name in a request.
func (b *Behind) Host() string {
	if b.Network == "unix" {
		return "localhost" // a socket has no name
	}
	return b.Address
}

// Connect makes a connection to it.
func (b *Behind) Connect(ctx context.Context) (net.Conn, error) {
	if b.Reach != nil {
		return b.Reach(ctx)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, b.Network, b.Address)
}

// writeHead writes a request up to its message.
func (b *Behind) writeHead(head *bytes.Buffer, p *Parcel) {
	head.Reset()
	for _, text := range [...]string{
		p.Method, " ", p.Target, " HTTP/1.1\r\nHost: ", b.Host(),
		"\r\nContent-Length: ", strconv.Itoa(len(p.Message)), "\r\n",
	} {
		head.WriteString(text)
	}
	p.Fields.Write(head)
	head.WriteString("\r\n")
}
