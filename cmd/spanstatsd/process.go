package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/dump"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// processOptions holds the flags of logging.
type processOptions struct{ logLevel, logFormat string }

// group declares the flags of the process. It stores the values of most of them directly in c.
func (o *processOptions) group(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("Process")
	f := g.Flags
	f.Var(commandline.Text(&c.HTTPAddr, "host:port"), "http-addr",
		"listen address for metrics, probes, /status, and the web page at /")
	f.Var(commandline.Choice(&o.logLevel, "info", "debug", "info", "warn", "error"), "log-level",
		"minimum level to log")
	f.Var(commandline.Choice(&o.logFormat, "auto", "auto", "text", "json"), "log-format",
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

// complete sets the default of --debug-dir with --debug: the directory of temporary files, if it is
// writable.
func (o *processOptions) complete(c *daemon.Config) {
	if c.Debug && c.Agent.DebugDir == "" && dump.Check(os.TempDir()) == nil {
		c.Agent.DebugDir = os.TempDir()
	}
}

// newLogger returns a logger with the level and the format that the flags specify.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[level]}
	if format == "text" || format == "auto" && isTerminal(os.Stderr) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(sanitize.NewJSONWriter(w), options))
}
