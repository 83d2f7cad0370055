package checkclient

import (
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// mostParts limits how many definitions or snapshots of a message are printed regardless of
// notes. As many again are printed if they have notes.
const mostParts = 8

// show adds a part to the event if it is one of the first parts or has notes.
func (e *event) show(part *entry, index int) {
	if index < mostParts || len(part.notes) > 0 && len(e.parts) < 2*mostParts {
		e.parts = append(e.parts, part)
	}
}

// define reports the numbers that a define message assigns to keys.
func (s *session) define(e *event, message, body []byte) *ending {
	walker, err := wire.WalkDefine(body)
	for index := 0; err == nil; index++ {
		at := len(message) - walker.Unread()
		number, raw, ok := walker.Next()
		if !ok {
			e.add("definitions", index)
			err = walker.Err()
			break
		}
		s.sums.definitions++
		if int64(number) >= int64(s.admit.MaxKeys) {
			return badMessage(message, at, fmt.Errorf("define key: number %d is not below %d, the maximum in "+
				"the welcome message", number, s.admit.MaxKeys))
		}
		part := &entry{facts: []any{"number", number}}
		if s.keys.define(number, raw) {
			s.sums.redefinitions++
			part.add("again", true)
		} else if err := s.readKey(part, raw); err != nil {
			return inKey(message, at, raw, err)
		}
		e.show(part, index)
	}
	return malformed(message, err)
}

// inKey locates an error in a key, which is the second value of a definition or the first value
// of a snapshot.
func inKey(message []byte, at int, raw []byte, err error) *ending {
	r := msgpack.NewReaderAt(message, at)
	r.Array()
	if !msgpack.IsBin(r.Peek()) {
		r.Integer()
	}
	left, _ := wire.UndecodedBytes(err)
	return badMessage(message, int(r.Bin().Start)+len(raw)-left, err)
}

// spans reports a batch of spans. Like the daemon, it drops a batch that is too large without
// parsing it.
func (s *session) spans(e *event, message, body []byte) *ending {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		return malformed(message, err)
	}
	s.sums.batches++
	frame := wire.HeaderLen + len(message)
	s.sums.batchBytes += frame
	s.sums.spans += walker.Len()
	if s.isDoomed() {
		s.death.batches = append(s.death.batches, nil)
	}
	e.add("spans", walker.Len())
	if walker.Len() > s.admit.MaxBatch {
		s.note(&e.entry, noteDropped, "a batch of %d spans, where welcome says max_batch %d: dropped, as "+
			"batch_too_large", walker.Len(), s.admit.MaxBatch)
		return nil
	}
	if walker.Len() > 0 {
		e.add("bytes_a_span", frame/walker.Len())
	}
	var snapshot wire.Snapshot
	for index := 0; ; index++ {
		at := len(message) - walker.Unread()
		if !walker.Next(&snapshot) {
			break
		}
		part := &entry{}
		if ended := s.keyOf(part, &snapshot, message, at); ended != nil {
			return ended
		}
		s.describe(part, &snapshot)
		s.noteSuspicious(part, &snapshot, message, at)
		if s.death != nil {
			s.keep(part, &snapshot)
		}
		e.show(part, index)
	}
	return malformed(message, walker.Err())
}

// keyOf reports the key of a snapshot.
func (s *session) keyOf(part *entry, snapshot *wire.Snapshot, message []byte, at int) *ending {
	switch _, known := s.keys.numbers[snapshot.Number]; {
	case snapshot.Numbered && !known:
		return badMessage(message, at, fmt.Errorf("resolve key: number %d is not defined on this connection",
			snapshot.Number))
	case snapshot.Numbered:
		s.sums.numbered++
		part.add("number", snapshot.Number)
	case s.keys.met(snapshot.Key):
		s.sums.repeated++
		s.sums.repeatedBytes += len(snapshot.Key)
		part.add("key", "again", "key_bytes", len(snapshot.Key))
	default:
		if err := s.readKey(part, snapshot.Key); err != nil {
			return inKey(message, at, snapshot.Key, err)
		}
	}
	return nil
}

// longest separates durations from timestamps: no span lasts as long, and the microseconds since
// 1970, read as nanoseconds, are more.
const longest = 7 * 24 * time.Hour

// noteSuspicious notes values that the daemon accepts, but that are probably a mistake of the tracer's
// author.
func (s *session) noteSuspicious(part *entry, snapshot *wire.Snapshot, message []byte, at int) {
	r := msgpack.NewReaderAt(message, at)
	r.Array()
	r.Skip() // key
	if duration, isNegative := r.Integer(); isNegative {
		s.note(part, noteNormalized, "a duration of %d becomes 0: is the clock monotonic?", int64(duration))
	}
	if snapshot.Duration > uint64(longest) {
		s.note(part, noteAdvice, "spans last longer than a week: a duration is nanoseconds from a span's "+
			"start to its end, not since 1970")
	}
	if snapshot.Weight < 1 {
		s.note(part, noteAdvice, "weights are below 1: a weight is how many spans one stands for, 1 / rate "+
			"where that is the rate at which it was sampled")
	}
}

// bucket is the agent's unit of time. The daemon accepts the current bucket and the one before. A
// time before year2001 is so far from both that it was probably sent in another unit.
const bucket, year2001 = int64(10 * time.Second), int64(978307200e9)

// describe reports the fields of a snapshot other than its key.
func (s *session) describe(part *entry, snapshot *wire.Snapshot) {
	now := s.config.Now()
	age := now.Sub(time.Unix(0, snapshot.End)).Round(time.Microsecond)
	part.add("duration", time.Duration(min(snapshot.Duration, 1<<63-1)), "age", age,
		"error", snapshot.Flags&span.Error != 0, "top_level", snapshot.Flags&span.TopLevel != 0)
	if snapshot.Weight != 1 {
		part.add("weight", snapshot.Weight)
	}
	switch ended := snapshot.End/bucket - now.UnixNano()/bucket; {
	case ended < -1:
		if s.sums.late++; snapshot.End < year2001 {
			s.note(part, noteAdvice, "spans end before 2001: an end is in nanoseconds since 1970")
		} else if s.sums.late == 1 {
			s.note(part, noteAdvice, "spans end before the window, this one %s ago: they are counted in "+
				"its oldest bucket", age)
		}
	case ended > 0:
		if s.sums.early++; s.sums.early == 1 {
			s.note(part, noteAdvice, "spans end after now, this one in %s: they are counted in the bucket "+
				"of now. Is a clock wrong?", -age)
		}
	}
}
