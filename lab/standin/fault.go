package standin

import (
	"net"
	"net/http"
)

// Fault is the misbehavior of the agent for one request. The zero Fault is normal behavior.
type Fault struct {
	Kind   FaultKind
	Status int         // status for Answer
	Header http.Header // header for Answer
	Raw    []byte      // bytes for Raw
}

// FaultKind is a kind of misbehavior.
type FaultKind int

const (
	NoFault     FaultKind = iota
	Answer                // read the request, respond with Status, count nothing
	Raw                   // read the request, write Raw and close, count nothing
	Hang                  // read the request and never respond, until the client disconnects or Close is called
	HangUnread            // like Hang, but without reading the body
	CloseUnread           // close the connection without reading the body
	CloseRead             // count the payload, then close the connection without a response
)

// writeRaw writes bytes, which need not be valid HTTP, and closes the connection.
func writeRaw(w http.ResponseWriter, bytes []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic("BUG: hijack: " + err.Error())
	}
	_, _ = conn.Write(bytes)
	_ = conn.Close()
}

// closeNow closes the connection with unread data, as the kernel does for a killed process. So
// the client's writes fail.
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
