package client

import (
	"errors"
	"fmt"
	"io"
	"reflect"

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
		c.setFeatures(said.Features)
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

// byeError is a daemon's bye.
type byeError wire.Bye

func farewell(body []byte) error {
	bye, err := wire.DecodeBye(body)
	if err != nil {
		return err
	}
	return (*byeError)(&bye)
}

func (e *byeError) Error() string {
	s := "the daemon said bye: " + e.Reason
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if len(e.Versions) > 0 {
		s += fmt.Sprintf(", it speaks versions %d", e.Versions)
	}
	return s
}

// endedInOrder reports whether the connection ended as one does that both sides
// are done with.
func (l *connection) endedInOrder() bool {
	var bye *byeError
	return errors.Is(l.ending, io.EOF) || errors.As(l.ending, &bye)
}

// Features is what the agent behind the daemon wants counted: whether stats at
// all, which peer tags, which span kinds, which resources not.
type Features = wire.Features

// Features returns what the daemon said last. Before it said anything stats are
// wanted and the lists are empty. The lists are shared: do not change them.
func (c *Client) Features() Features { return *c.features.Load() }

// FeatureChanges receives when Features has changed since the last receive.
// There is one channel a client, with room for one notice.
func (c *Client) FeatureChanges() <-chan struct{} { return c.featureChanges }

// setFeatures is called by whoever reads from the daemon, one at a time.
func (c *Client) setFeatures(f Features) {
	if f.Stats {
		c.gate.set(none)
	} else {
		c.gate.set(notWanted)
	}
	if reflect.DeepEqual(f, c.Features()) {
		return
	}
	c.features.Store(&f)
	select {
	case c.featureChanges <- struct{}{}:
	default:
	}
}
