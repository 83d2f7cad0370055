package datadog

import (
	"net/http"
	"strings"
	"time"
)

// writeTimeout is how long a tracer may take to read a piece of an answer that does not
// fit into its socket's buffer. Between two pieces there may be any time.
const writeTimeout = 30 * time.Second

// responseWriter sets a write deadline for each piece of an answer, so that a tracer that
// does not read holds its connection no longer than that.
type responseWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func newResponseWriter(w http.ResponseWriter) *responseWriter {
	rw := &responseWriter{w, http.NewResponseController(w)}
	rw.extendDeadline() // for what net/http writes itself, such as 100 Continue
	return rw
}

func (w *responseWriter) extendDeadline() {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // none where it can't be set
}

// WriteHeader writes the header. Informational ones are sent at once.
func (w *responseWriter) WriteHeader(code int) {
	w.extendDeadline()
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.extendDeadline()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController, also to flush what was written just before.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// keepNamedFields keeps the header fields that a tracer names in Connection. A proxy has to
// remove them, among them the mark of a request whose tracer counted it; but to a tracer we
// are the agent, not a proxy.
func keepNamedFields(h http.Header) {
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
