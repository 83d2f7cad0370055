package main

import (
	"context"
	"os/signal"
	"syscall"
)

// untilInterrupted returns a context that SIGTERM and SIGINT cancel too. A second signal ends the
// process immediately.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
