package standin

import (
	"io"
	"net"
	"net/http"
)

// Fault is how the agent misbehaves on one request. The zero Fault is none.
type Fault struct {
	Kind   FaultKind
	Status int         // with Answer
	Header http.Header // with Answer
}

// FaultKind is a way to misbehave.
type FaultKind int

const (
	NoFault     FaultKind = iota
	Answer                // read the request, answer Status, count nothing
	Hang                  // read the request and never answer, until the client leaves or Close
	CloseUnread           // close the connection without reading the body
	CloseRead             // count the payload, then close the connection without an answer
)

// SetFault has f asked about every request from now on, /info included; nil
// ends all faults.
func (a *Agent) SetFault(f func(*http.Request) Fault) {
	if f == nil {
		f = func(*http.Request) Fault { return Fault{} }
	}
	a.fault.Store(&f)
}

// misbehave carries a fault out before the request is served, and reports
// whether that was all.
func (a *Agent) misbehave(w http.ResponseWriter, r *http.Request, fault Fault) bool {
	switch fault.Kind {
	case Answer:
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range fault.Header {
			w.Header()[name] = values
		}
		a.ledger.refused()
		http.Error(w, "a fault on purpose", fault.Status)
	case Hang:
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-a.closed.Done():
		}
		panic(http.ErrAbortHandler)
	case CloseUnread:
		closeNow(w)
	default:
		return false
	}
	return true
}

// closeNow closes the connection as a killed process does: with what was not
// read still in it, so that the client's writing fails.
func closeNow(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic("BUG: hijack: " + err.Error())
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
