package datadog

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
)

// readTimeout is how long a tracer may take to send a body: the agent's own.
const readTimeout = 5 * time.Second

// hold reads a request's body into memory; the caller releases it. Where that is not
// possible hold finishes the request itself, counts why, and returns nil: a body that finds
// no room streams through, and one that breaks off is answered.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, tooLarge, incomplete *atomic.Uint64) *bodies.Body {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTimeout)) // none where it can't be set
	held, err := s.bodies.Read(r.Body, r.ContentLength)
	if err != nil && !errors.Is(err, bodies.ErrNoRoom) {
		incomplete.Add(1)
		held.Release()
		refuse(w, err) // the deadline stays: nothing more is waited for
		return nil
	}
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		tooLarge.Add(1)
		s.streamJoined(w, r, held)
		return nil
	}
	return held
}
