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

// resolve turns the daemon's answer into the caller's error.
func (f *flush) resolve(m wire.Flush) {
	if m.OK {
		f.answer <- nil
		return
	}
	f.answer <- fmt.Errorf("flush spans: the daemon could not report them: %s", m.Error)
}

func (f *flush) fail(err error) { f.answer <- fmt.Errorf("flush spans: %w", err) }
