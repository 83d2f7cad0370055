package status

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export/agent"
)

// TestStatus_ControlCharactersAreEscaped checks that /status escapes the control characters of labels, so that a
// terminal shows them, and that the decoded JSON has the original label.
func TestStatus_ControlCharactersAreEscaped(t *testing.T) {
	const label = "GET /\u202egpj.exe\u2069\u009b2J"
	from := rooms(t)
	var err error
	if from.Agent, err = agent.New(agent.Config{URL: agent.URL{
		Network: "unix",
		Address: "/" + label,
	}}); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Addr: "127.0.0.1:0", FlushInterval: 10 * time.Second, Sources: from,
		Log:      slog.New(slog.DiscardHandler),
		Settings: []Setting{{Name: "agent-url", Value: label}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Close(t.Context()) })
	answer, err := http.Get("http://" + s.Addr() + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	body := string(content)
	if strings.ContainsAny(body, "\u202e\u2069\u009b") || strings.Count(body, `\u202e`) != 2 {
		t.Errorf("hidden characters are not shown in %s", body)
	}
	var status Status
	if err := json.Unmarshal(content, &status); err != nil || status.Agent.URL != "unix:///"+label ||
		status.Config[0].Value != label {
		t.Errorf("%v: a program reads %q", err, status.Agent.URL)
	}
}
