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
	Raw    []byte      // with Raw
}

// FaultKind is a way to misbehave.
type FaultKind int

const (
	NoFault     FaultKind = iota
	Answer                // read the request, answer Status, count nothing
	Raw                   // read the request, write these bytes and close, count nothing
	Hang                  // read the request and never answer, until the client leaves or Close
	HangUnread            // the same, and do not read the body
	CloseUnread           // close the connection without reading the body
	CloseRead             // count the payload, then close the connection without an answer
)

// writeRaw answers bytes that need be no HTTP, and closes.
func writeRaw(w http.ResponseWriter, bytes []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic("BUG: hijack: " + err.Error())
	}
	_, _ = conn.Write(bytes)
	_ = conn.Close()
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
