package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestControlCharactersAreShownInLogs, in either format: a label can't turn a line of the
// log around for whoever reads it, and a program reads the label as it was.
func TestControlCharactersAreShownInLogs(t *testing.T) {
	const label = "GET /\u202egpj.exe\u2069\u009b2J"
	for _, format := range []string{"text", "json"} {
		var log bytes.Buffer
		logger := newLogger(&log, "info", format)
		logger.Info("a label collapses: "+label, "value", label)
		line := log.String()
		if strings.ContainsAny(line, "\u202e\u2069\u009b") || strings.Count(line, `\u202e`) != 2 {
			t.Errorf("%s: %q", format, line)
		}
		var read struct{ Msg, Value string }
		if format == "json" && (json.Unmarshal(log.Bytes(), &read) != nil || read.Value != label ||
			!strings.HasSuffix(read.Msg, label)) {
			t.Errorf("a program reads %q", read)
		}
	}
}
