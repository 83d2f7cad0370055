package otlp

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
)

// outgoing is a request to the destination. Its bytes are the call's, so they stay until
// net/http has closed every reader of them, which may be after the answer.
type outgoing struct {
	prefix  []byte // of gRPC
	message []byte
	readers sync.WaitGroup // that are not closed
}

// newReader reads it from the beginning.
func (o *outgoing) newReader() (io.ReadCloser, error) {
	o.readers.Add(1)
	return &outgoingReader{Reader: io.MultiReader(bytes.NewReader(o.prefix), bytes.NewReader(o.message)), closed: sync.OnceFunc(o.readers.Done)}, nil
}

type outgoingReader struct {
	io.Reader
	closed func()
}

func (r *outgoingReader) Close() error {
	r.closed()
	return nil
}

// notForwarded are the fields of a request that end here, because they are about the
// connection or about how the body is written, which is said anew.
var notForwarded = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
	"Host": true, "Content-Length": true, "Content-Type": true, "Content-Encoding": true, "Accept-Encoding": true,
	"Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
}

// forwarded are the fields of a request that go on.
func forwarded(h http.Header) http.Header {
	named := h.Values("Connection")
	on := make(http.Header, len(h)+3)
	for name, values := range h {
		if !notForwarded[name] && !strings.HasPrefix(name, "Grpc-") && !isNamed(named, name) {
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
