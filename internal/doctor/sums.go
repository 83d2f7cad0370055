package doctor

import "github.com/spanstatsd/spanstatsd/internal/health"

// sums are those of the way: what was received, and where all of it is.
func (f *Findings) sums(s *health.Status) {
	const about = "sums"
	dropped := uint64(0)
	for _, n := range s.Books.Dropped {
		dropped += n
	}
	if !s.Books.Balanced {
		f.add(Wrong, about, requestMends["bug"],
			"the books do not balance: %d received, %d counted, %d dropped",
			s.Books.Received, s.Books.Aggregated, dropped)
	} else {
		f.ok(about, "%d spans received = %d counted + %d not counted (%d of them ignored) + %d on their way",
			s.Books.Received, s.Books.Aggregated, dropped, s.Books.Dropped["ignored"], s.Books.InTransit)
	}
	for i := range s.Destinations {
		b := &s.Destinations[i].Books
		f.ok(about, "of %d counted %s has %d; %d did not get there, %d are still here", s.Books.Aggregated,
			s.Destinations[i].Name, b.Flushed, b.Unsent, b.Held)
	}
	f.reasons(Wrong, about, s.Books.Dropped, droppedMends, "%d spans came and were not counted: %s")
	if n := s.Books.Dropped["left_to_agent"]; n > 0 {
		f.add(Notice, about, "none is needed for the totals; the door's line says why",
			"%d spans could not be counted here and went on, for the agent to count", n)
	}
	f.reasons(Wrong, about, s.ClientLost, lostMends, "%d spans never came, as their clients say: %s")
	for _, name := range sortedOf(s.Collapsed) {
		mend := "find what has so many values and shorten it, or raise --cardinality-limit " + name + "=N"
		switch name {
		case "whole_key":
			mend = "raise --max-aggregates and --label-bytes"
		case "origin":
			mend = "raise --max-origins, or name less in --otlp-resource-attributes"
		}
		f.add(Notice, about, mend, "%d spans are counted without their own %s, which had too many values",
			s.Collapsed[name], name)
	}
	if s.Early > 0 {
		f.add(Notice, about, "set the clock of who sends them by NTP", "%d spans end in the future", s.Early)
	}
}
