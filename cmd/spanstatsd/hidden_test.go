package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestLog_EscapesControlCharacters: in both formats, control characters in a label are escaped,
// so that they have no effect on a terminal. A program that parses the log reads the original
// label.
func TestLog_EscapesControlCharacters(t *testing.T) {
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
