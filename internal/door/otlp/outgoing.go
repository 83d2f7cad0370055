package otlp

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// outgoing is a request to the destination. Its bytes are the call's, so they stay until
// net/http has closed every reader of them, which may be after the answer.
type outgoing struct {
	prefix  []byte // of gRPC
	message []byte
	readers sync.WaitGroup // that are not closed
}

// newReader reads it from the beginning. A read takes of both what it has room for, as net/http
// writes a frame of HTTP/2 for each, and it says with the last byte that this is the end.
func (o *outgoing) newReader() (io.ReadCloser, error) {
	o.readers.Add(1)
	return &outgoingReader{Reader: &net.Buffers{o.prefix, o.message}, closed: sync.OnceFunc(o.readers.Done)}, nil
}

type outgoingReader struct {
	io.Reader
	closed func()
}

func (r *outgoingReader) Close() error {
	r.closed()
	return nil
}

// isForwarded says whether a field of a request goes on: none that is about the connection, or
// about how the body is written, which is said anew.
func isForwarded(name string) bool {
	switch name {
	case "Content-Type", "Content-Encoding", "Accept-Encoding":
		return false
	}
	return http1.IsForwarded(name) && !strings.HasPrefix(name, "Grpc-")
}

// forwarded are the fields of a request that go on.
func forwarded(h http.Header) http.Header {
	named := h.Values("Connection")
	on := make(http.Header, len(h)+3)
	for name, values := range h {
		if isForwarded(name) && !isNamed(named, name) {
			on[name] = values
		}
	}
	return on
}

// isNamed says whether a field is one that Connection names.
func isNamed(named []string, field string) bool {
	for _, value := range named {
		for name := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(name), field) {
				return true
			}
		}
	}
	return false
}
