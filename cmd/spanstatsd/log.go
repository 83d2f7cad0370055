package main

import (
	"io"
	"log"
	"log/slog"

	"github.com/spanstatsd/spanstatsd/internal/shown"
)

// The words of --log-level and --log-format.
var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"auto", "text", "json"}
)

// newLogger writes to w lines of a level and in a format that are among those words.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		panic("BUG: a level of the log is none: " + err.Error())
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "text" || format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(shown.JSONLines(w), options))
}

// takeLibraryLog has what libraries print, such as net/http of an agent that answers what
// nobody asked, go the way of all lines: in their format, and waited for by nobody.
func takeLibraryLog(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(to.Handler(), slog.LevelDebug).Writer())
}
