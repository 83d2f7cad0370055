package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
)

// giveUp gives the room back that nothing was written into.
func (k *kept) giveUp() {
	if k.room != nil {
		k.room.Release()
		k.room = nil
	}
}

// note counts a call's, where it is not counted before.
func (k *keeping) note(on, gone sampling.Tally, saved int) {
	k.keptTraces.Add(uint64(on.Traces))
	k.keptSpans.Add(uint64(on.Spans))
	k.goneTraces.Add(uint64(gone.Traces))
	k.goneSpans.Add(uint64(gone.Spans))
	k.savedBytes.Add(uint64(max(0, saved)))
}

// measure finds out what of a call that was read goes on, and takes the room for it where that
// is written anew, before anything is counted: a call that finds none is tried again as a
// whole.
func (s *Server) measure(c *call, w *worker) (left sampling.Left, no *reply) {
	left.IsWhole = true
	if s.config.Keep == nil && !s.config.Marks {
		return left, nil
	}
	left = w.sample.Measure(w.reader.Request(), s.config.Keep, s.config.Marks)
	switch {
	case left.IsWhole || s.endsAll(left):
		return left, nil
	case c.Size()+left.Size > s.config.MaxBodyBytes:
		return left, refuse(ResultTooLarge, otlpanswer.ResourceExhausted, "what goes on of the request "+
			"finds no room beside it; have the SDK export less at a time, or raise --otlp-max-body-bytes")
	}
	if c.kept.room = s.Bodies.Take(left.Size); c.kept.room == nil {
		return left, s.notRead(bodies.ErrNoRoom, ResultBusy)
	}
	return left, nil
}

// endsAll says whether no trace goes on.
func (s *Server) endsAll(left sampling.Left) bool {
	return s.config.Keep != nil && !left.IsWhole && left.Kept.Spans == 0
}

// keep leaves of a counted call what goes on. The memory of what came is given back, since an
// answer may take its time.
func (s *Server) keep(c *call, w *worker, left sampling.Left, isCountedBefore bool) {
	came := len(c.message)
	switch {
	case left.IsWhole:
		came = 0
	case s.endsAll(left):
		c.kept.isEmpty = true
		c.Release()
	default:
		c.kept.room.Bytes = w.sample.AppendLeft(c.kept.room.Bytes)
		c.Release()
		c.message, c.protobuf = nil, nil
		c.kept.body, c.kept.room = c.Keep(c.kept.room), nil
		s.pack(c, w)
		came -= len(c.kept.body.Bytes)
	}
	if s.config.Keep != nil && !isCountedBefore {
		s.kept.note(left.Kept, left.Gone, came)
	}
}

// pack has what was written go on, compressed where the call was and there is room for that: with gzip,
// whatever it was before, as every destination reads that.
func (s *Server) pack(c *call, w *worker) {
	if c.packing == bodies.Plain {
		return
	}
	packed := c.Keep(s.Bodies.Take(packedBytes(len(c.kept.body.Bytes))))
	if packed == nil {
		return
	}
	w.packer.pack(packed, c.kept.body.Bytes)
	c.kept.body.Release()
	c.kept.body, c.kept.packing = packed, bodies.Gzip
}
