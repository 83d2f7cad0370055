package door

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// notHandedBack are the fields of an answer that are about the connection that it came by.
var notHandedBack = [...]string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !slices.Contains(notHandedBack[:], name) {
			to[name] = values
		}
	}
}

// showEarly passes on what is said before an answer. That the body is waited for is said to us,
// and we say it ourselves.
func showEarly(w http.ResponseWriter, early *http.Response) {
	if early.StatusCode == http.StatusContinue {
		return
	}
	copyHeader(w.Header(), early.Header)
	w.WriteHeader(early.StatusCode)
	clear(w.Header())
}

// ErrLongAnswer is of a body that is longer than it may be. It was read to its end, and what stands
// behind it is there, unless it is much longer.
var ErrLongAnswer = errors.New("read answer: it is too long")

// farther is how many times as long a body may be for what stands behind it to be read.
const farther = 16

// ReadAll reads the body of an answer that has no more than so many bytes.
func (a *Answer) ReadAll(most int) ([]byte, error) {
	if a.whole != nil {
		return a.body, nil
	}
	defer a.rest.Body.Close()
	said, err := io.ReadAll(io.LimitReader(a.rest.Body, int64(most)+1))
	switch {
	case err != nil && a.ctx.Err() != nil:
		return nil, fmt.Errorf("read answer: %w", a.ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case len(said) > most:
		_, _ = io.CopyN(io.Discard, a.rest.Body, farther*int64(most))
		return nil, ErrLongAnswer
	}
	if a.from != nil {
		a.from.IsRead = !a.rest.Close
	}
	return said, nil
}

// HandBack writes an answer as it comes: whatever is here before more is waited for, and what has
// a trailer in pieces, which have room for one. An error says that it broke off, on either side.
func (a *Answer) HandBack(w http.ResponseWriter) error {
	if plain, is := w.(*http1.Writer); is && a.whole != nil {
		return plain.WriteWhole(a.whole)
	}
	copyHeader(w.Header(), a.rest.Header)
	w.WriteHeader(a.Status)
	control, piece := http.NewResponseController(w), a.from.Piece
	for a.rest.Body != http.NoBody {
		if a.from.From.Buffered() == 0 || len(a.rest.Trailer) > 0 {
			if err := control.Flush(); err != nil {
				return err //nolint:wrapcheck // nobody reads it
			}
		}
		n, err := a.rest.Body.Read(piece)
		if n > 0 {
			if _, err := w.Write(piece[:n]); err != nil {
				return err //nolint:wrapcheck // the same
			}
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err //nolint:wrapcheck // the same
		}
	}
	for name, values := range a.rest.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
	a.from.IsRead = !a.rest.Close
	return nil
}
