package main

import (
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/dump"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// processOptions are flags about the process, as far as they are to be read.
type processOptions struct {
	logLevel, logFormat string
}

func (o *processOptions) group(c *daemon.Config) *commandline.Group {
	g := commandline.NewGroup("The process")
	f := g.First
	f.Var(commandline.Text(&c.HTTPAddr, "host:port"), "http-addr",
		"address that answers metrics, probes, /status, and a page for a person at /")
	f.Var(commandline.Choice(&o.logLevel, "info", logLevels...), "log-level",
		"least important line that is logged")

	f = g.Rest
	f.Var(commandline.Choice(&o.logFormat, "auto", logFormats...), "log-format",
		"how lines are logged: auto for text on a terminal and JSON elsewhere")
	f.StringSliceVar(&c.HTTPHosts, "http-hosts", nil,
		"more names by which a browser may ask --http-addr for the page and /status, as name,name; "+
			"addresses, localhost and the machine's own names need none (default: none)")
	f.Var(commandline.Text(&c.WebConfigFile, commandline.Path), "web-config-file",
		"file with TLS and basic auth of --http-addr, in the format that Prometheus's exporters have in "+
			"common (default: none)")
	f.DurationVar(&c.ShutdownGrace, "shutdown-grace", c.ShutdownGrace,
		"time to deliver everything after SIGTERM, SIGINT or SIGHUP")
	f.BoolVar(&c.Debug, "debug", false, "answer /debug/pprof at --http-addr, which only a developer asks for")
	f.Var(commandline.Text(&c.Agent.DebugDir, commandline.Directory), "debug-dir",
		"directory that keeps payloads which the agent refuses, for spanstatsd dump (default: with "+
			"--debug the directory of temporary files, else none)")
	return g
}

func (o *processOptions) complete(c *daemon.Config) {
	if c.Debug && c.Agent.DebugDir == "" {
		// Under a read-only root there may be no such place; then none are kept.
		if _, err := dump.Open(os.TempDir()); err == nil {
			c.Agent.DebugDir = os.TempDir()
		}
	}
	c.Version = version
}

func (o *processOptions) logger(w io.Writer) *slog.Logger {
	return newLogger(w, o.logLevel, o.logFormat)
}

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
	return slog.New(slog.NewJSONHandler(sanitize.JSONLines(w), options))
}

// takeLibraryLog has what libraries print, such as net/http of an agent that answers what
// nobody asked, go the way of all lines: in their format, and waited for by nobody.
func takeLibraryLog(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(to.Handler(), slog.LevelDebug).Writer())
}
