package checkclient

import "fmt"

// Minimum numbers for giving advice: spans per batch, batches, and spans with a repeated key.
const fewSpans, someBatches, manyAgain = 8, 8, 64

// end reports the totals of the connection, and returns whether it had no error.
func (s *session) end() (well bool) {
	t := &s.sums
	unfulfilled := &entry{}
	s.noteUnfulfilled(unfulfilled)
	well = t.notes[noteMalformed]+t.notes[noteDropped]+t.notes[noteKept] == 0
	e := &event{s.id, "end", entry{facts: []any{
		"well", well, "messages", t.messages, "bytes", t.bytes, "batches", t.batches, "spans", t.spans,
		"by_number", t.numbered, "whole_again", t.repeated, "definitions", t.definitions,
		"defined_again", t.redefinitions,
		"late", t.late, "early", t.early, "normalized", t.notes[noteNormalized],
		"dropped_batches", t.notes[noteDropped],
	}, notes: unfulfilled.notes}}
	advise := func(format string, args ...any) {
		e.notes = append(e.notes, note{noteAdvice, fmt.Sprintf(format, args...)})
	}
	if t.batches >= someBatches && t.spans < fewSpans*t.batches {
		advise("%.1f spans a batch, %.0f bytes a span: in batches of 1 a span costs six to seven times the "+
			"processor time that it costs among 64. Buffer spans",
			float64(t.spans)/float64(t.batches), float64(t.batchBytes)/float64(max(t.spans, 1)))
	}
	if t.repeated >= manyAgain && 2*t.repeatedBytes > t.batchBytes {
		advise("%d spans brought a key whole that had come before: %d of the %d bytes of all batches. "+
			"Define the keys that come often; a number takes 1 to 3 bytes",
			t.repeated, t.repeatedBytes, t.batchBytes)
	}
	s.printer.print(e, true)
	return well
}
