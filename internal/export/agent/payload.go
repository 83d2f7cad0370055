package agent

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// encoder makes payloads of sealed cycles. Its memory is reused from cycle to cycle; it has one user at a
// time.
type encoder struct {
	groups   groupEncoder
	bounds   []int         // between the encoded groups in groups, from 0
	fitting  []*export.Row // of which they are
	whole    *fields
	parts    [][]byte // of the payload, in whole and in groups
	sequence uint64   // of the next payload; one count for all origins, from 0
}

func newEncoder() *encoder {
	return &encoder{
		groups: groupEncoder{fields: newFields()},
		whole:  newFields(),
	}
}

// encode makes payloads of a cycle, each with groups of one origin.
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
		for room := c.Limit - e.headSize(origin); len(rows) > 0; {
			done, unfit := e.fill(rows, room)
			if len(e.fitting) > 0 {
				emit(e.payload(origin, uint64(c.Width)))
			}
			rows, unencodable = rows[done:], unencodable+unfit
		}
	}
	return export.Encoded{Lost: map[export.Reason]uint64{export.Unencodable: unencodable}}
}

// bucketHead is more than the entries of a bucket take, without its groups.
const bucketHead = 64

// fill encodes groups until a payload is full. It returns how many rows are done, and the spans of those
// that fit in no payload. A group that does not fit any more is encoded again for the next payload.
func (e *encoder) fill(rows []export.Row, room int) (done int, lost uint64) {
	e.groups.Reset()
	e.bounds, e.fitting = append(e.bounds[:0], 0), e.fitting[:0]
	left := room
	for i := range rows {
		start := e.groups.Len()
		e.groups.group(&rows[i])
		size := e.groups.Len() - start
		if size+bucketHead > room {
			e.groups.Truncate(start)
			lost += rows[i].Spans
			continue
		}
		if n := len(e.fitting); n == 0 || !sameBucket(e.fitting[n-1], &rows[i]) {
			size += bucketHead
		}
		if left -= size; left < 0 {
			return i, lost // groups after the last bound are ignored
		}
		e.bounds = append(e.bounds, e.groups.Len())
		e.fitting = append(e.fitting, &rows[i])
	}
	return len(rows), lost
}

// sameBucket reports whether two neighboring rows share a bucket of the payload. The agent folds groups of
// one bucket that differ only in their type, or the mapping of their sketches, and compares them only after
// it has rewritten their names. So each type and mapping gets a bucket of its own with the same start, and
// there is nothing to fold. (Buckets that differ only in mapping are added up later, as for tracers.)
func sameBucket(a, b *export.Row) bool {
	return a.Bucket() == b.Bucket() && a.Mapping() == b.Mapping() && a.Key().Type == b.Key().Type
}

// payload joins the groups that fill has encoded.
func (e *encoder) payload(o *span.Origin, width uint64) *export.Payload {
	buckets, spans := 0, uint64(0)
	for i, r := range e.fitting {
		buckets += present(i == 0 || !sameBucket(e.fitting[i-1], r))
		spans += r.Spans
	}
	heads := e.headSize(o) + buckets*bucketHead
	e.whole.Reset()
	e.whole.Grow(heads) // at once, or what is in parts would be overwritten
	e.head(o, e.sequence)
	e.whole.array("Stats", buckets)
	e.parts = e.parts[:0]
	for first := 0; first < len(e.fitting); {
		last := first + 1
		for last < len(e.fitting) && sameBucket(e.fitting[first], e.fitting[last]) {
			last++
		}
		e.bucket(e.fitting[first].Bucket(), width, first, last)
		first = last
	}
	// Joined, the bytes are copied once into memory that was not cleared before.
	p := &export.Payload{Origin: *o, Body: bytes.Join(e.parts, nil), Spans: spans}
	e.sequence++
	clear(e.fitting)
	return p
}

// bucket adds one bucket to the parts: the head that was written since the last one, and the groups from
// first up to last.
func (e *encoder) bucket(start int64, width uint64, first, last int) {
	e.whole.mapping(3)
	e.whole.number("Start", uint64(max(0, start)))
	e.whole.number("Duration", width)
	e.whole.array("Stats", last-first)
	e.parts = append(e.parts, e.whole.Next(e.whole.Len()), e.groups.Bytes()[e.bounds[first]:e.bounds[last]])
}

// head writes a payload except for its buckets. ContainerID and the agent's own fields are left out: the
// agent sets them.
func (e *encoder) head(o *span.Origin, sequence uint64) {
	w := e.whole
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

// headSize is the maximum length of the head and of the number of buckets.
func (e *encoder) headSize(o *span.Origin) int {
	e.whole.Reset()
	e.head(o, ^uint64(0))
	return e.whole.Len() + len("Stats") + 8
}
