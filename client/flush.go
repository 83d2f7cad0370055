package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

var (
	errClosed    = errors.New("the client is closed")
	errLeftAlone = errors.New("the connection ended before the daemon answered: flush again")
)

// flush is one caller who waits for the daemon's answer.
type flush struct {
	ctx    context.Context
	answer chan error // has room for the one answer, so nobody waits to give it
	handed uint64     // spans of the connection when it was asked
}

// Flush sends everything that was published before, asks the daemon to report
// now, and returns nil when the daemon says that every destination accepted it. While
// the daemon is away it waits for it, as long as ctx lasts.
func (c *Client) Flush(ctx context.Context) error {
	f := &flush{ctx: ctx, answer: make(chan error, 1)}
	select {
	case c.flushes <- f:
	case <-c.closing:
		return fmt.Errorf("flush spans: %w", errClosed)
	case <-ctx.Done():
		return fmt.Errorf("flush spans: wait for the daemon: %w", ctx.Err())
	}
	select {
	case err := <-f.answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("flush spans: wait for the daemon's answer: %w", ctx.Err())
	}
}

// resolve turns the daemon's answer into the caller's error.
func (f *flush) resolve(m wire.Flush) {
	if m.OK {
		f.answer <- nil
		return
	}
	f.answer <- fmt.Errorf("flush spans: the daemon could not report them: %s", m.Error)
}

func (f *flush) fail(err error) { f.answer <- fmt.Errorf("flush spans: %w", err) }
