package standin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// tracePaths are the paths to which tracers send traces.
var tracePaths = []string{"/v0.3/traces", "/v0.4/traces", "/v0.5/traces", "/v0.7/traces", "/v1.0/traces"}

// isCounted reports whether a request is marked as already counted, in the way the agent does.
func isCounted(h http.Header) bool {
	value := h.Get("Datadog-Client-Computed-Stats")
	isTrue, err := strconv.ParseBool(value)
	return value != "" && (isTrue || err != nil)
}

// serveTraces accepts a request with traces and responds with sampling rates.
func (a *Agent) serveTraces(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost && r.Method != http.MethodPut {
		a.refuse(w, http.StatusMethodNotAllowed, "traces are sent with PUT or POST")
		return
	}
	bytes, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		a.refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("read limit reached at %d", tooLarge.Limit))
		return
	}
	if err != nil {
		a.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	traces, err := strconv.ParseUint(r.Header.Get("X-Datadog-Trace-Count"), 10, 64)
	if err != nil {
		a.ledger.problem("traces of an unknown number: %v", err)
	}
	a.ledger.acceptTraces(TraceTotals{1, traces, uint64(bytes)}, isCounted(r.Header))
	if a.cfg.OnTraces != nil {
		a.cfg.OnTraces(Traces{Header: r.Header.Clone(), IsCounted: isCounted(r.Header)})
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"rate_by_service":{"service:,env:":1}}`)
}
