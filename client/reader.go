package client

import (
	"errors"
	"fmt"
	"io"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// read is the reader: it takes what the daemon says until there is no more, and then ends
// whatever write is under way. The write says exactly how far it came, so nothing is lost.
func (l *connection) read(c *Client) {
	defer close(l.gone)
	for l.ending == nil {
		t, body, err := l.next()
		if err == nil {
			err = l.handle(c, t, body)
		}
		l.ending = err
	}
	l.conn.SetWriteDeadline(longAgo)
}

// handle acts on one message. An error ends the connection.
func (l *connection) handle(c *Client, t wire.Type, body []byte) error {
	switch t {
	case wire.TypeFeatures:
		said, err := wire.DecodeFeatures(body)
		if err != nil {
			return err
		}
		l.settle(said.Settled)
		c.features.set(said.Features, &c.gate)
		return nil
	case wire.TypeFlush:
		answer, err := wire.DecodeFlush(body)
		if err != nil {
			return err
		}
		l.mu.Lock()
		f := l.flushes[answer.ID]
		delete(l.flushes, answer.ID)
		l.mu.Unlock()
		if f != nil {
			if answer.OK {
				l.settle(f.handed)
			}
			f.resolve(answer)
		}
		return nil
	case wire.TypeBye:
		return farewell(body)
	}
	return fmt.Errorf("the daemon sent %s, which it may not", t)
}

// endedInOrder reports whether the connection ended as one does that both sides
// are done with.
func (l *connection) endedInOrder() bool {
	return errors.Is(l.ending, io.EOF) || l.saidBye()
}

// saidBye reports whether the daemon did.
func (l *connection) saidBye() bool {
	var bye *byeError
	return errors.As(l.ending, &bye)
}
