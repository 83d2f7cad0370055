package status

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStatus_UnencodableIsAnError checks that the response is an error and not empty, and that repeated
// requests are logged once.
func TestStatus_UnencodableIsAnError(t *testing.T) {
	var log bytes.Buffer
	failures := newFailureLog(slog.New(slog.NewTextHandler(&log, nil)))
	for _, value := range []any{math.Inf(1), Status{Process: Process{UptimeSeconds: math.NaN()}}} {
		answer := httptest.NewRecorder()
		failures.answerJSON(answer, value)
		if text := answer.Body.String(); answer.Code != http.StatusInternalServerError ||
			!strings.Contains(text, "encode status: json: unsupported value") {
			t.Errorf("%v is answered with %d: %q", value, answer.Code, text)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 ||
		!strings.Contains(log.String(), "unsupported value: +Inf") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestMetrics_DisconnectIsNoError checks that a scraper that disconnects causes no error in the log.
func TestMetrics_DisconnectIsNoError(t *testing.T) {
	var log bytes.Buffer
	failures := newFailureLog(slog.New(slog.NewTextHandler(&log, nil)))
	left := &net.OpError{Op: "write", Err: errors.New("connection reset by peer")}
	failures.Println("error encoding and sending metric family:", fmt.Errorf("flush: %w", left))
	if log.Len() > 0 {
		t.Errorf("the log says %q", log.String())
	}
	failures.Println("error gathering metrics:", errors.New("collected twice"))
	if !strings.Contains(log.String(), "collected twice") {
		t.Errorf("the log says %q", log.String())
	}
}
