package datadog

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// notHandedBack are the fields of an answer that are about the connection to the agent.
var notHandedBack = [...]string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// showEarly passes on what an agent says before its answer. That it waits for the body it
// says to us, and we say it ourselves.
func showEarly(w http.ResponseWriter, early *http.Response) {
	if early.StatusCode == http.StatusContinue {
		return
	}
	copyHeader(w.Header(), early.Header)
	w.WriteHeader(early.StatusCode)
	clear(w.Header())
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !slices.Contains(notHandedBack[:], name) {
			to[name] = values
		}
	}
}

// handBack writes an answer to the tracer as it comes: whatever is here before more is
// waited for, and what has a trailer in pieces, which have room for one. An error says that
// it broke off, on either side.
func handBack(c *http1.Upstream, w http.ResponseWriter, answer *http.Response) error {
	copyHeader(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	control := http.NewResponseController(w)
	for answer.Body != http.NoBody {
		if c.From.Buffered() == 0 || len(answer.Trailer) > 0 {
			if err := control.Flush(); err != nil {
				return err
			}
		}
		n, err := answer.Body.Read(c.Piece)
		if n > 0 {
			if _, err := w.Write(c.Piece[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	for name, values := range answer.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
	c.IsRead = !answer.Close
	return nil
}
