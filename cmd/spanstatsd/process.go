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
	g := commandline.NewGroup("Process")
	f := g.First
	f.Var(commandline.Text(&c.HTTPAddr, "host:port"), "http-addr",
		"listen address for metrics, probes, /status, and the web page at /")
	f.Var(commandline.Choice(&o.logLevel, "info", logLevels...), "log-level",
		"minimum level to log")

	f = g.Rest
	f.Var(commandline.Choice(&o.logFormat, "auto", logFormats...), "log-format",
		"log format: text, json, or auto for text on a terminal and JSON otherwise")
	f.StringSliceVar(&c.HTTPHosts, "http-hosts", nil,
		"additional host names that browsers may use for --http-addr, separated by commas; IP "+
			"addresses, localhost and the machine's names are always allowed (default: none)")
	f.Var(commandline.Text(&c.WebConfigFile, commandline.Path), "web-config-file",
		"file with TLS and basic auth settings for --http-addr, in the format of Prometheus "+
			"exporters (default: none)")
	f.DurationVar(&c.ShutdownGrace, "shutdown-grace", c.ShutdownGrace,
		"time for a graceful shutdown after SIGTERM, SIGINT or SIGHUP")
	f.BoolVar(&c.Debug, "debug", false, "serve /debug/pprof at --http-addr")
	f.Var(commandline.Text(&c.Agent.DebugDir, commandline.Directory), "debug-dir",
		"directory for payloads that the agent rejected, for spanstatsd dump (default: with --debug "+
			"the directory of temporary files, otherwise none)")
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
