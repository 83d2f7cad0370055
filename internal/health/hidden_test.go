package health

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestControlCharactersAreShownInStatus: who reads /status in a terminal sees what a label
// holds, and a program reads the label as it was.
func TestControlCharactersAreShownInStatus(t *testing.T) {
	const label = "GET /\u202egpj.exe\u2069\u009b2J"
	s, err := New(Config{
		Addr: "127.0.0.1:0", FlushInterval: 10 * time.Second, Sources: rooms(t), Log: slog.New(slog.DiscardHandler),
		AgentURL: label, Settings: []Setting{{Name: "agent-url", Value: label}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Close(t.Context()) })
	answer := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/status", nil))
	body := answer.Body.String()
	if strings.ContainsAny(body, "\u202e\u2069\u009b") || strings.Count(body, `\u202e`) != 2 {
		t.Errorf("hidden characters are not shown in %s", body)
	}
	var status Status
	if err := json.Unmarshal(answer.Body.Bytes(), &status); err != nil || status.Agent.URL != label || status.Config[0].Value != label {
		t.Errorf("%v: a program reads %q", err, status.Agent.URL)
	}
}
