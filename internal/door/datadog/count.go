package datadog

import (
	"iter"
	"log/slog"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling/unsampled"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Begin counts the body now that there is a connection to the agent, and not before: a request
// that nobody takes would be counted, and once more when its tracer tries again. It is done before
// the header is written, so that it can be marked.
func (j *job) Begin() door.Parcel {
	if !j.isDecided {
		j.result = j.count()
		j.Result = int(j.result)
	}
	message := j.Body.Bytes
	if j.IsCounted() {
		j.Fields.Set(headerComputedStats, "true")
		if j.left != nil {
			message = j.left
		}
	}
	identifyIn(j.Conn, j.Fields)
	j.Fields.Keep(http1.IsForwarded)
	return door.Parcel{Method: j.Method, Target: j.Target, Fields: j.Fields, Message: message}
}

// count counts the body. Whatever happens, the request goes on.
func (j *job) count() (result Result) {
	s := j.server
	defer func() {
		if p := recover(); p != nil {
			result = ResultBug
			s.Log.Bug(p)
		}
	}()
	policy := s.policy.Load()
	if policy == nil {
		return ResultNotWanted
	}
	c := <-s.counting
	defer func() { c.Release(); s.counting <- c }()
	body := j.Body.Bytes
	s.Walked.Add(uint64(len(body)))
	isTop := door.IsTrue(j.Fields.Get(headerComputedTop))
	if err := c.Count(j.format, body, j.Fields.Get(headerLang), isTop, policy); err != nil {
		s.Log.Write(slog.LevelWarn, "traces are left to the agent to count", "error", err, "format",
			j.format.String())
		return ResultUnread
	}
	batches := batchesOf(c, c.Origin(originOf(j.Fields)))
	before, why, ok := j.Publish(body, batches, goingOn(c))
	if ok && j.drops {
		j.dropUnsampled(c, before)
	}
	switch {
	case before:
		return ResultCountedBefore
	case ok:
		return ResultCounted
	case why == admit.DropNotWanted:
		return ResultNotWanted
	}
	return ResultNoRoom
}

// goingOn are the spans whose traces sampling keeps, nil where there are none.
func goingOn(c *rules.Counter) iter.Seq[door.Going] {
	if len(c.Kept()) == 0 {
		return nil
	}
	return func(yield func(door.Going) bool) {
		for _, kept := range c.Kept() {
			g := door.Going{Batch: int(kept.Batch), At: int(kept.At)}
			if g.TraceHigh, g.TraceLow, g.Span = c.IDs(kept); !yield(g) {
				return
			}
		}
	}
}

// batchesOf are the batches of a counted body, each with its origin.
func batchesOf(c *rules.Counter, origin span.Origin) iter.Seq2[span.Origin, *span.Batch] {
	origin.Normalize()
	return func(yield func(span.Origin, *span.Batch) bool) {
		for baseService, batch := range c.Batches {
			if origin.Service = baseService; !yield(origin, batch) {
				return
			}
		}
	}
}

// dropUnsampled cuts the body and tells the agent how much was cut, on top of what
// the tracer says that it did not send itself. What the agent refused was told to
// nobody, so the next try tells it again; but it is one trace in our own counters.
func (j *job) dropUnsampled(c *rules.Counter, before bool) {
	left, cutTraces, cutSpans := unsampled.Cut(c.Decoded())
	if cutTraces == 0 {
		return
	}
	counters := &j.server.counters
	if !before {
		counters.unsampledTraces.Add(uint64(cutTraces))
		counters.unsampledSpans.Add(uint64(cutSpans))
	}
	counters.savedBytes.Add(uint64(len(j.Body.Bytes) - len(left)))
	j.left = left
	add(j.Fields, headerDroppedTraces, cutTraces)
	add(j.Fields, headerDroppedSpans, cutSpans)
	if j.Fields.Get(headerTraceCount) != "" {
		add(j.Fields, headerTraceCount, -cutTraces)
	}
}

// add adds to a number in a header.
func add(h header, name string, n int) {
	before, err := strconv.Atoi(h.Get(name))
	if err != nil {
		before = 0
	}
	h.Set(name, strconv.Itoa(max(0, before+n)))
}
