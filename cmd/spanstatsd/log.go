package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/spanstatsd/spanstatsd/internal/shown"
	"github.com/spf13/pflag"
)

func addLogFlags(f *pflag.FlagSet, level, format *string, least string) {
	f.StringVar(level, "log-level", least, "least important line to log: debug, info, warn, error")
	f.StringVar(format, "log-format", "auto", "text, json, or auto: text on a terminal and JSON elsewhere")
}

// newLogger writes to w in the given format.
func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	badLevel := least.UnmarshalText([]byte(level))
	if badLevel != nil {
		badLevel = fmt.Errorf("parse --log-level: %q is none of debug, info, warn, error", level)
	}
	options := &slog.HandlerOptions{Level: least}
	switch {
	case format == "text", format == "auto" && isTerminal(w):
		return slog.New(slog.NewTextHandler(w, options)), badLevel
	case format == "json", format == "auto":
		return slog.New(slog.NewJSONHandler(shown.JSONLines(w), options)), badLevel
	}
	return nil, errors.Join(badLevel, fmt.Errorf("parse --log-format: %q is none of text, json, auto", format))
}

// takeLibraryLog has what libraries print, such as net/http of an agent that answers what
// nobody asked, go the way of all lines: in their format, and waited for by nobody.
func takeLibraryLog(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(to.Handler(), slog.LevelDebug).Writer())
}

// isTerminal tells a terminal from a file or a pipe.
func isTerminal(w io.Writer) bool {
	file, ok := fileOf(w)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
