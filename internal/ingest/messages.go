package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// handle does what one message asks. It reports whether the tracer has left.
func (c *conn) handle(message []byte) (left bool, err error) {
	kind, body, err := wire.Split(message)
	if err != nil {
		return false, badMessage(err)
	}
	switch kind {
	case wire.TypeSpans:
		return false, badMessage(c.publisher.Publish(body))
	case wire.TypeDefine:
		return false, c.define(body)
	case wire.TypeLost:
		return false, c.countLost(body)
	case wire.TypeFlush:
		return false, c.flush(body)
	case wire.TypeBye:
		return true, nil
	default:
		return false, faultf(FaultBadMessage, "handle message: a tracer does not send %s here", kind)
	}
}

func (c *conn) define(body []byte) error {
	walker, err := wire.WalkDefine(body)
	if err != nil {
		return badMessage(err)
	}
	maxKeys := c.config.Admit.MaxKeys()
	for number, raw, ok := walker.Next(); ok; number, raw, ok = walker.Next() {
		if int64(number) >= int64(maxKeys) {
			return faultf(FaultBadMessage, "define key: number %d is not below the %d of the welcome", number,
				maxKeys)
		}
		if err := c.publisher.Define(number, raw); err != nil {
			return badMessage(err)
		}
	}
	return badMessage(walker.Err())
}

// countLost adds what the tracer itself had to drop to the counters of its kind.
func (c *conn) countLost(body []byte) error {
	lost, err := wire.DecodeLost(body)
	if err != nil {
		return badMessage(err)
	}
	for reason, spans := range lost {
		c.counters.countLost(reason, spans)
		addLost(&c.lost, spans)
	}
	return nil
}

// maxOpenFlushes bounds the answers that one connection may be owed.
const maxOpenFlushes = 8

// flush asks for a report and answers when it has arrived. The connection goes on reading
// meanwhile; one question too many is refused at once.
func (c *conn) flush(body []byte) error {
	request, err := wire.DecodeFlush(body)
	if err != nil {
		return badMessage(err)
	}
	if c.reporting.Add(1) > maxOpenFlushes {
		c.reporting.Add(-1)
		c.answer(wire.Flush{ID: request.ID, Error: "too many flushes of this connection wait for their " +
			"answer"})
		return nil
	}
	c.answering.Go(func() {
		err := c.config.Report(c.ended)
		isEnded := c.ended.Err() != nil // asked while the answer is owed, see serve
		c.reporting.Add(-1)
		if isEnded {
			return
		}
		answer := wire.Flush{ID: request.ID, OK: err == nil}
		if err != nil {
			answer.Error = err.Error()
		}
		c.answer(answer)
	})
	return nil
}
