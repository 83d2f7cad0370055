package post_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
)

// An invalid URL can contain a password or a key in the wrong place, and errors are logged. So no
// error contains it.
func TestError_HidesSecrets(t *testing.T) {
	for name, parse := range map[string]func(string) error{
		"agent": func(text string) error { _, err := agent.ParseURL(text); return err },
		"OTLP":  func(text string) error { _, err := otlp.ParseEndpoint(text); return err },
	} {
		for _, text := range []string{
			"http://user:hidden@host:8126", "http://hidden@host:8126", "http://host:8126/%zz?api_key=hidden",
			"host:8126?api_key=hidden", "ftp://host/hidden", "http://host:8126#hidden", "http://host:hidden",
			"unix://hidden/socket", "hidden:8126", "unix:hidden", "http:///hidden",
		} {
			err := parse(text)
			if err == nil {
				t.Errorf("%s: %s was accepted", name, text)
			} else if message := err.Error(); strings.Contains(message, "hidden") ||
				!strings.Contains(message, "use http") {
				t.Errorf("%s: error for %s: %s", name, text, message)
			}
		}
	}
	for _, text := range []string{"http://host:8126/?api_key=hidden", "http://host:8126/api_key=hidden"} {
		if _, err := agent.ParseURL(text); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("error for %s: %v", text, err)
		}
	}
}
