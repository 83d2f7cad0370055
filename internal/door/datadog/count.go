package datadog

import (
	"iter"
	"log/slog"
	"strconv"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// decide counts the body when there is a connection to the agent, and not before:
// a request that nobody takes would be counted, and once more when its tracer
// tries again. It is done before the header is written, so that it can be marked.
func (j *job) decide() {
	if j.decided {
		return // this is another connection
	}
	j.decided = true
	if j.result = j.count(); j.sum != 0 {
		j.header.Set(headerComputedStats, "true")
	}
}

// count counts the body. Whatever happens, the request goes on.
func (j *job) count() (result Result) {
	s := j.server
	defer func() {
		if p := recover(); p != nil {
			result = ResultBug
			s.log.Bug(p)
		}
	}()
	policy := s.policy.Load()
	if policy == nil {
		return ResultNotWanted
	}
	c := <-s.counting
	defer func() { s.counting <- c.Next() }()
	s.counters.bytes.Add(uint64(len(j.body.Bytes)))
	if err := c.Count(j.format, j.body.Bytes, j.header.Get(headerLang), isTrue(j.header.Get(headerComputedTop)), policy); err != nil {
		s.log.Write(slog.LevelWarn, "traces are left to the agent to count", "error", err, "format", j.format.String())
		return ResultUnread
	}
	before, result := j.publish(c)
	if j.sum == 0 {
		return result
	}
	if j.drops {
		j.dropUnsampled(c, before)
	}
	return result
}

// publish publishes what was counted, unless it was before. From there on the request is
// marked, whatever goes wrong.
func (j *job) publish(c *traces.Counter) (before bool, result Result) {
	s, sum := j.server, j.server.counted.Sum(j.body.Bytes)
	result = ResultCountedBefore
	before = s.counted.Once(sum, func(counted func()) {
		result = ResultCounted
		commit := func() {
			j.propose(c)
			counted()
			j.sum = sum
		}
		batches := batchesOf(c, c.Origin(originOf(&j.header)))
		reason, ok := s.publishers.Publish(commit, admit.Walked(batches), time.Now())
		switch {
		case ok:
		case reason == admit.DropNotWanted:
			result = ResultNotWanted
		default:
			result = ResultNoRoom
		}
	})
	if before {
		j.sum = sum
	}
	return before, result
}

// batchesOf are the batches of a counted body, each with its origin.
func batchesOf(c *traces.Counter, origin span.Origin) iter.Seq2[span.Origin, []byte] {
	origin.Normalize()
	return func(yield func(span.Origin, []byte) bool) {
		for baseService, spans := range c.Batches {
			if origin.Service = baseService; !yield(origin, spans) {
				return
			}
		}
	}
}

// dropUnsampled cuts the body and tells the agent how much was cut, on top of what
// the tracer says that it did not send itself. What the agent refused was told to
// nobody, so the next try tells it again; but it is one trace in our own counters.
func (j *job) dropUnsampled(c *traces.Counter, before bool) {
	left, cutTraces, cutSpans := c.Cut(j.body.Bytes)
	if cutTraces == 0 {
		return
	}
	s := j.server
	if !before {
		s.counters.unsampledTraces.Add(uint64(cutTraces))
		s.counters.unsampledSpans.Add(uint64(cutSpans))
	}
	s.counters.savedBytes.Add(uint64(len(j.body.Bytes) - len(left)))
	j.body.Send = left
	add(&j.header, headerDroppedTraces, cutTraces)
	add(&j.header, headerDroppedSpans, cutSpans)
	if j.header.Get(headerTraceCount) != "" {
		add(&j.header, headerTraceCount, -cutTraces)
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
