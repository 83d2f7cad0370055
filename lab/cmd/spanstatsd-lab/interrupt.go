package main

import (
	"context"
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
