package ingest

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// writeTimeout is for a tracer that does not read. A message has some hundred bytes, and a
// socket holds hundreds of kilobytes, so only a tracer that is broken reaches this time-out.
const writeTimeout = 100 * time.Millisecond

// write sends one frame. Any goroutine may call it. A tracer that has left meanwhile does
// not miss it, and what it wrote before is read all the same.
func (c *conn) write(frame []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.writeLocked(frame)
}

// writeLocked sends one frame. A tracer that does not take it loses its connection, or it
// could make us wait for each answer in turn.
func (c *conn) writeLocked(frame []byte) error {
	err := c.socket.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = c.socket.Write(frame)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.counters.faults[FaultTooSlow].Add(1)
		c.log.fault(FaultTooSlow, fmt.Errorf("write to tracer: it does not read: %w", err), c.attributes())
		// Nothing can be handed over from here on; the reads go on to the end of what was.
		_ = c.socket.CloseRead()
		_ = c.socket.CloseWrite()
	}
	return err
}

// welcome tells the tracer what it may send, if it is still there: one with little to say
// may have written that and left. Features that change from here on follow it. It is told what
// became of the spans of its earlier connection, if it asked and somebody knows.
func (c *conn) welcome(earlier []uint64) {
	c.writing.Lock()
	defer c.writing.Unlock()
	config := &c.config
	token := ""
	if c.wantsSettled {
		token = c.publisher.Token()
	}
	err := c.writeLocked(wire.AppendWelcome(nil, &wire.Welcome{
		Version: wire.Version, Daemon: config.Version,
		MaxFrame: config.MaxFrame, MaxBatch: config.Admit.MaxBatch(), MaxKeys: config.Admit.MaxKeys(),
		MaxKeyBytes: config.Admit.MaxKeyBytes(),
		Features:    *c.features.Load(), Settled: c.wantsSettled, Interval: uint64(config.Interval),
		Token: token, Earlier: earlier,
	}))
	c.greeted = err == nil
}

// announce sends changed features to a tracer that was greeted. One that is not
// will read them in its welcome.
func (c *conn) announce(features *wire.Features) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.greeted {
		_ = c.writeLocked(wire.AppendFeatures(nil,
			&wire.Announcement{Features: *features, Settled: c.settled}))
	}
}

// settle tells a tracer that asked for it how many of its spans have had their outcome, if
// they are more now that all cycles before that one have. It need not remember for longer
// what it handed over of those: should we be killed, they are not lost.
func (c *conn) settle(through uint64, features *wire.Features) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.greeted {
		return
	}
	if settled := c.publisher.Settled(through); settled > c.settled && c.wantsSettled {
		c.settled = settled
		_ = c.writeLocked(wire.AppendFeatures(nil, &wire.Announcement{Features: *features, Settled: settled}))
	}
}

func (c *conn) answer(flush wire.Flush) { c.write(wire.AppendFlushAnswer(nil, &flush)) }

func (c *conn) bye(bye wire.Bye) { c.write(wire.AppendBye(nil, &bye)) }
