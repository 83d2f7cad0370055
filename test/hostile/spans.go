package main

import (
	"math/rand/v2"
	"time"
)

// spans are the spans of one request. Each trace has a server span as its root and a client span as its
// child. Both are counted in every semantic mode.
type spans struct {
	service string
	all     []span
}

type span struct {
	resource        string
	trace, id, root uint64
	start, duration int64
	failed          bool
}

func (s *span) isRoot() bool { return s.root == 0 }

// newSpans creates count random spans with a few resources that end now.
func newSpans(service string, resources []string, count int) spans {
	s := spans{service: service}
	trace := uint64(0)
	for i := range count {
		span := span{
			resource: resources[rand.IntN(len(resources))], id: rand.Uint64() | 1,
			duration: 1 + rand.Int64N(int64(2*time.Second)), failed: rand.IntN(7) == 0,
		}
		if i%2 == 1 {
			span.root = s.all[i-1].id
		} else {
			trace = rand.Uint64() | 1
		}
		span.trace = trace
		span.start = time.Now().UnixNano() - span.duration
		s.all = append(s.all, span)
	}
	return s
}

func (s *spans) counts() (c counts) {
	for _, span := range s.all {
		c.add(counts{1, bit(span.failed), uint64(span.duration)})
	}
	return c
}

func bit(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
