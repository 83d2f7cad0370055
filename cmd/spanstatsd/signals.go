package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilInterrupted is a context that also ends with SIGTERM or SIGINT. A second signal
// ends the process, whatever it then still waits for.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// stopSignals is told of each signal that means an end. A terminal that closes is one,
// unless it was set aside (nohup); a log's end that is gone is none.
func stopSignals() chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	return signals
}
