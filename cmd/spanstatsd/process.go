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

// processOptions are the flags of the log.
type processOptions struct{ logLevel, logFormat string }

func (o *processOptions) group(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("The process")
	f := g.Flags
	f.Var(commandline.Text(&c.HTTPAddr, "host:port"), "http-addr",
		"address that answers metrics, probes, /status, and a page for a person at /")
	f.Var(commandline.Choice(&o.logLevel, "info", "debug", "info", "warn", "error"), "log-level",
		"least important line that is logged")
	f.Var(commandline.Choice(&o.logFormat, "auto", "auto", "text", "json"), "log-format",
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

// complete chooses the directory of --debug. None is usable under a read-only root.
func (o *processOptions) complete(c *daemon.Config) {
	if c.Debug && c.Agent.DebugDir == "" && dump.Check(os.TempDir()) == nil {
		c.Agent.DebugDir = os.TempDir()
	}
}

// newLogger returns a logger with a level and a format of the flags.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[level]}
	if format == "text" || format == "auto" && isTerminal(os.Stderr) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(sanitize.JSONLines(w), options))
}
