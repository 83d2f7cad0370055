package agent

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// encoder encodes sealed cycles as payloads. Its memory is reused for the next cycle. It is not
// safe for concurrent use.
type encoder struct {
	groups   groupEncoder
	bounds   []int         // offsets between the encoded groups in groups; the first is 0
	rows     []*export.Row // rows of the groups between bounds
	heads    *fields       // the payload except for its groups
	parts    [][]byte      // parts of the payload, in whole and in groups
	sequence uint64        // of the next payload, for all origins together
}

func newEncoder() *encoder {
	return &encoder{
		groups: groupEncoder{fields: newFields()},
		heads:  newFields(),
	}
}

// encode encodes a cycle as payloads, each with the groups of one origin.
func (e *encoder) encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	unencodable, rest := uint64(0), c.Rows
	e.groups.sketches.begin(c.Sealed)
	for len(rest) > 0 {
		n := 1
		for n < len(rest) && rest[n].Origin() == rest[0].Origin() {
			n++
		}
		origin, rows := &c.Origins[rest[0].Origin()], rest[:n]
		rest = rest[n:]
		maxBytes := c.Limit - e.headSize(origin)
		for len(rows) > 0 {
			done, tooLarge := e.fill(rows, maxBytes)
			if len(e.rows) > 0 {
				emit(e.payload(origin, uint64(c.Width)))
			}
			rows, unencodable = rows[done:], unencodable+tooLarge
		}
	}
	return export.Encoded{Lost: map[export.Reason]uint64{export.Unencodable: unencodable}}
}

// bucketHead is an upper limit for the length of a bucket without its groups.
const bucketHead = 64

// fill encodes groups until their length reaches maxBytes. It returns the number of rows that it
// has handled, and the spans of rows that are too large for any payload. The first group that does
// not fit is encoded again for the next payload.
func (e *encoder) fill(rows []export.Row, maxBytes int) (done int, lost uint64) {
	e.groups.Reset()
	e.bounds, e.rows = append(e.bounds[:0], 0), e.rows[:0]
	remaining := maxBytes
	for i := range rows {
		start := e.groups.Len()
		e.groups.group(&rows[i])
		size := e.groups.Len() - start
		if size+bucketHead > maxBytes {
			e.groups.Truncate(start)
			lost += rows[i].Spans
			continue
		}
		if n := len(e.rows); n == 0 || !sameBucket(e.rows[n-1], &rows[i]) {
			size += bucketHead
		}
		if remaining -= size; remaining < 0 {
			return i, lost // payload ignores the group after the last bound
		}
		e.bounds = append(e.bounds, e.groups.Len())
		e.rows = append(e.rows, &rows[i])
	}
	return len(rows), lost
}

// sameBucket reports whether two neighboring rows share a bucket of the payload. The agent merges
// groups of one bucket that differ only in type or mapping, and rewrites names before it compares
// them. So each type and mapping gets a bucket of its own with the same start, and nothing is
// merged. (Later, buckets that differ only in mapping are added up, as for tracers.)
func sameBucket(a, b *export.Row) bool {
	return a.Bucket() == b.Bucket() && a.Mapping() == b.Mapping() && a.Key().Type == b.Key().Type
}

// payload joins the groups that fill has encoded.
func (e *encoder) payload(o *span.Origin, width uint64) *export.Payload {
	buckets, spans := 0, uint64(0)
	for i, r := range e.rows {
		buckets += present(i == 0 || !sameBucket(e.rows[i-1], r))
		spans += r.Spans
	}
	headBytes := e.headSize(o) + buckets*bucketHead
	e.heads.Reset()
	e.heads.Grow(headBytes) // parts refer to the buffer, so it must not be reallocated
	e.head(o, e.sequence)
	e.heads.array("Stats", buckets)
	e.parts = e.parts[:0]
	for first := 0; first < len(e.rows); {
		last := first + 1
		for last < len(e.rows) && sameBucket(e.rows[first], e.rows[last]) {
			last++
		}
		e.bucket(e.rows[first].Bucket(), width, first, last)
		first = last
	}
	// Join copies the bytes only once, into memory that is not cleared before.
	p := &export.Payload{Origin: *o, Body: bytes.Join(e.parts, nil), Spans: spans}
	e.sequence++
	clear(e.rows)
	return p
}

// bucket adds one bucket to the parts: its head, after everything written to whole since the last
// one, and its groups from first up to but excluding last.
func (e *encoder) bucket(start int64, width uint64, first, last int) {
	e.heads.mapping(3)
	e.heads.number("Start", uint64(max(0, start)))
	e.heads.number("Duration", width)
	e.heads.array("Stats", last-first)
	e.parts = append(e.parts, e.heads.Next(e.heads.Len()), e.groups.Bytes()[e.bounds[first]:e.bounds[last]])
}

// head writes a payload except for its buckets. It omits ContainerID and the agent's own fields,
// which the agent sets.
func (e *encoder) head(o *span.Origin, sequence uint64) {
	w := e.heads
	w.mapping(11)
	w.text("Hostname", o.Host)
	w.text("Env", o.Env)
	w.text("Version", o.Version)
	w.text("Lang", o.Lang)
	w.text("TracerVersion", o.TracerVersion)
	w.text("RuntimeID", o.RuntimeID)
	w.number("Sequence", sequence)
	w.text("Service", o.Service)
	w.text("GitCommitSha", o.GitCommitSHA)
	w.text("ProcessTags", o.ProcessTags)
}

// headSize returns the maximum length of the head, including the number of buckets.
func (e *encoder) headSize(o *span.Origin) int {
	e.heads.Reset()
	e.head(o, ^uint64(0))
	return e.heads.Len() + len("Stats") + 8
}
