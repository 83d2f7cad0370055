package standin

import (
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
