package main

import (
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/daemon/systemd"
	"github.com/spanstatsd/spanstatsd/internal/logging/logqueue"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/cobra"
)

// newRunCommand returns the command that runs the daemon.
func newRunCommand(variables map[string]string) *cobra.Command {
	o := &runOptions{variables: variables}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon until it receives SIGTERM, SIGINT or SIGHUP. It then shuts down
gracefully within --shutdown-grace: it stops accepting connections, reads the spans
that clients have already written, and delivers all statistics, including those of
the open interval. A second signal ends it within a second.

Each flag has an environment variable: SPANSTATSD_ and the flag's name in upper case,
with _ instead of -. A flag takes precedence over its variable. An unknown variable
with this prefix is an error. Sizes are in bytes, or in KiB, MiB or GiB, such as 16MiB.

The exit status is 2 if the configuration is invalid; all errors are printed, one per
line.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cmd.Flags().Changed(commandline.AllFlag) {
				return commandline.Mistake("--all shows every flag with --help; leave it out to run the " +
					"daemon")
			}
			if err = o.check(cmd); err != nil {
				return err
			}
			if queue, ok := cmd.ErrOrStderr().(*logqueue.Queue); ok {
				o.config.LogLinesLost = queue.Lost
				o.config.FlushLog = func() { queue.Flush(logFlushTimeout) }
				queue.OnLost(func(lines uint64) {
					o.config.Log.Warn("log lines were lost because the reader of the log was too slow", "lines", lines)
				})
			}
			slog.SetLogLoggerLevel(slog.LevelDebug) // level of lines that libraries log with package log
			slog.SetDefault(o.config.Log)
			if o.config.Supervisor, err = systemd.Open(o.config.Log); err != nil {
				return commandline.AsUsage(err)
			}
			if err = takeSockets(&o.config); err != nil {
				return commandline.AsUsage(err)
			}
			return run(o.config)
		},
	}
	o.addTo(cmd)
	return cmd
}

// takeSockets stores the listening sockets that a service manager passes to the daemon in the
// configuration of the receiver with the same address. It returns an error if a socket matches no
// receiver.
func takeSockets(c *daemon.Config) error {
	sockets, err := systemd.TakeSockets()
	if err != nil {
		return err //nolint:wrapcheck // the error is complete
	}
	c.Ingest.Socket.Inherited = sockets.Unix(c.Ingest.Socket.Path)
	for _, receiver := range c.Receivers() {
		receiver.Socket.Inherited = sockets.Unix(receiver.Socket.Path)
		receiver.Given = sockets.TCP(receiver.Addr)
	}
	return sockets.CheckTaken() //nolint:wrapcheck // the error is complete
}

// lastSecond is the time that a stop still has after a second signal. A stop with nothing left to deliver needs less,
// so two signals in short succession lose nothing.
const lastSecond = time.Second

// run runs the daemon until a signal. A second signal ends the process after lastSecond, and undelivered
// statistics are lost.
func run(config daemon.Config) error {
	signal.Ignore(syscall.SIGPIPE) // the daemon survives if the reader of its log exits
	// The handler stays until the process ends: without it, a second signal would kill a daemon that has already stopped.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	if limit := memory.SetGoLimit(config.MemoryLimit); limit > 0 {
		config.Log.Info("set GOMEMLIMIT from the memory limit", "limit",
			memory.Text(config.MemoryLimit.Bytes),
			"from", config.MemoryLimit.Source, "gomemlimit", memory.Text(limit))
	}
	d, err := daemon.New(config)
	if err != nil {
		return err
	}
	d.Start()
	config.Log.Info("stopping", "signal", (<-signals).String(), "grace", config.ShutdownGrace.String())
	stopped := make(chan struct{})
	go func() { d.Stop(); close(stopped) }()
	select {
	case <-stopped:
		return nil
	case <-signals:
	}
	select {
	case <-d.Settled():
		return nil
	case <-time.After(lastSecond):
		return errors.New("stop daemon: interrupted by a second signal; undelivered statistics are lost")
	}
}
