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
	bounds   []int         // group i of the payload is groups[bounds[i]:bounds[i+1]]
	rows     []*export.Row // row of group i
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

// encode encodes a cycle as payloads, each with the groups of one origin. An origin with too many
// groups for one payload has several.
func (e *encoder) encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	unencodable, rest := uint64(0), c.Rows
	e.groups.sketches.begin(c.Sealed)
	for len(rest) > 0 {
		rowsOfOrigin := 1
		for rowsOfOrigin < len(rest) && rest[rowsOfOrigin].Origin() == rest[0].Origin() {
			rowsOfOrigin++
		}
		origin, rows := &c.Origins[rest[0].Origin()], rest[:rowsOfOrigin]
		rest = rest[rowsOfOrigin:]
		maxBytes := c.Limit - e.headSize(origin)
		for len(rows) > 0 {
			done, lostSpans := e.fill(rows, maxBytes)
			if len(e.rows) > 0 {
				emit(e.payload(origin, uint64(c.Width)))
			}
			rows, unencodable = rows[done:], unencodable+lostSpans
		}
	}
	return export.Encoded{Unencodable: unencodable}
}

// bucketHead is an upper limit for the length of a bucket without its groups.
const bucketHead = 64

// fill encodes rows as the groups of one payload, as long as the groups and the heads of their
// buckets fit in maxBytes. It returns the number of rows that are done: in the payload, or skipped
// because they are too large for any payload. lost is the number of spans in skipped rows.
//
// The first group that does not fit is in e.groups, but not within e.bounds. Therefore it is not
// part of the payload, and the next fill encodes its row again.
func (e *encoder) fill(rows []export.Row, maxBytes int) (done int, lost uint64) {
	e.groups.Reset()
	e.bounds, e.rows = append(e.bounds[:0], 0), e.rows[:0]
	remaining := maxBytes
	for i := range rows {
		start := e.groups.Len()
		e.groups.group(&rows[i])
		size := e.groups.Len() - start
		if isTooLarge := size+bucketHead > maxBytes; isTooLarge {
			e.groups.Truncate(start)
			lost += rows[i].Spans
			continue
		}
		n := len(e.rows)
		if beginsBucket := n == 0 || !sameBucket(e.rows[n-1], &rows[i]); beginsBucket {
			size += bucketHead
		}
		remaining -= size
		if remaining < 0 {
			return i, lost
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
