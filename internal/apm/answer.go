package apm

import (
	"net/http"
	"strings"
	"time"
)

// writeTimeout is how long a tracer may take to read a piece of an answer that does
// not fit into its socket's buffer. Between two pieces there may be any time.
const writeTimeout = 30 * time.Second

// answer gives each piece its time, so that a tracer that does not read holds its
// connection no longer than that.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newAnswer(w http.ResponseWriter) *answer {
	a := &answer{w, http.NewResponseController(w)}
	a.soon() // for what is written without us, such as that the body may come
	return a
}

func (a *answer) soon() {
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // one that can't be set is none
}

// WriteHeader sends those that only announce another one at once.
func (a *answer) WriteHeader(code int) {
	a.soon()
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	a.soon()
	return a.ResponseWriter.Write(p)
}

// FlushError sends what was written.
func (a *answer) FlushError() error {
	a.soon()
	return a.control.Flush()
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// keepNamed keeps the fields that a tracer names in Connection. A proxy would have to
// take them away, the mark of a request that its tracer counted among them; but to a
// tracer we are the agent, which has no use for the names.
func keepNamed(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(name), "Upgrade") {
				h.Set("Connection", "Upgrade")
				return
			}
		}
	}
	h.Del("Connection")
}
