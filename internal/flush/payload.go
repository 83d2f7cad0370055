package flush

import (
	"bytes"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// payload is one encoded ClientStatsPayload on its way to the agent.
type payload struct {
	sequence uint64
	origin   span.Origin
	body     []byte
	spans    uint64
	born     time.Time
	shipment *shipment

	attempts int   // how often the agent was asked to take it
	lastErr  error // why it did not at the last of them
}

// encoder makes payloads of sealed cycles. Its memory is reused from cycle to
// cycle; it has one user at a time.
type encoder struct {
	groups   groupEncoder
	ends     []int // where each encoded group ends in groups
	whole    *fields
	parts    [][]byte // of the payload, in whole and in groups
	merger   merger
	sequence uint64 // of the next payload; one count for all origins, from 0
}

func newEncoder() *encoder {
	return &encoder{
		groups: groupEncoder{fields: newFields()},
		whole:  newFields(),
	}
}

// encode makes the payloads of a sealed cycle, none longer than limit, and
// counts the spans of what cannot be put in any.
func (e *encoder) encode(sealed *aggregate.Sealed, limit int) (payloads []*payload, unencodable uint64) {
	defer e.merger.forget()
	for rest := e.merger.merge(sealed); len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].origin() == rest[0].origin() {
			n++
		}
		origin := &sealed.Origins[rest[0].origin()]
		made, lost := e.origin(origin, rest[:n], uint64(sealed.Width), limit)
		payloads, unencodable = append(payloads, made...), unencodable+lost
		rest = rest[n:]
	}
	return payloads, unencodable
}

// origin makes the payloads of one origin: first every group by itself, then
// as many groups a payload as fit.
func (e *encoder) origin(o *span.Origin, rows []row, width uint64, limit int) (payloads []*payload, lost uint64) {
	room := limit - e.headSize(o)
	e.groups.Reset()
	e.ends = e.ends[:0]
	fitting := rows[:0]
	for i := range rows {
		start := e.groups.Len()
		e.groups.group(&rows[i])
		if e.groups.Len()-start+bucketHead > room {
			e.groups.Truncate(start)
			lost += rows[i].Spans
			continue
		}
		e.ends = append(e.ends, e.groups.Len())
		fitting = append(fitting, rows[i])
	}
	for first := 0; first < len(fitting); {
		last := e.fill(fitting, first, room)
		payloads = append(payloads, e.payload(o, fitting, first, last, width))
		first = last
	}
	return payloads, lost
}

// bucketHead is more than a bucket's own entries take.
const bucketHead = 64

// fill returns the row after the last that fits into a payload from first on.
func (e *encoder) fill(rows []row, first, room int) (last int) {
	for last = first; last < len(rows); last++ {
		if last == first || !sameBucket(&rows[last-1], &rows[last]) {
			room -= bucketHead
		}
		if room -= e.ends[last] - e.start(last); room < 0 {
			break
		}
	}
	return last
}

// start is where an encoded group starts.
func (e *encoder) start(group int) int {
	if group == 0 {
		return 0
	}
	return e.ends[group-1]
}

// sameBucket says whether two neighbours share a bucket of the payload. The
// agent folds groups of one bucket that differ in nothing but their type, and
// compares them only after it has rewritten their names. So each type gets a
// bucket of its own with the same start, and there is nothing left to fold.
func sameBucket(a, b *row) bool { return a.bucket() == b.bucket() && a.key().Type == b.key().Type }

// payload assembles the groups from first up to last.
func (e *encoder) payload(o *span.Origin, rows []row, first, last int, width uint64) *payload {
	buckets, spans := 0, uint64(0)
	for i := first; i < last; i++ {
		buckets += present(i == first || !sameBucket(&rows[i-1], &rows[i]))
		spans += rows[i].Spans
	}
	heads := e.headSize(o) + buckets*bucketHead
	e.whole.Reset()
	e.whole.Grow(heads) // at once, or what is in parts would be overwritten
	e.head(o, e.sequence)
	e.whole.array("Stats", buckets)
	e.parts = e.parts[:0]
	for from := first; from < last; {
		to := from + 1
		for to < last && sameBucket(&rows[from], &rows[to]) {
			to++
		}
		e.bucket(rows[from].bucket(), width, from, to)
		from = to
	}
	// Joined, the bytes are copied once into memory that was not cleared before.
	p := &payload{sequence: e.sequence, origin: *o, body: bytes.Join(e.parts, nil), spans: spans}
	e.sequence++
	return p
}

// bucket adds one bucket of the groups from first up to last to the parts: what
// was written since the last one, and the groups as they stand.
func (e *encoder) bucket(start int64, width uint64, first, last int) {
	e.whole.mapping(3)
	e.whole.number("Start", uint64(max(0, start)))
	e.whole.number("Duration", width)
	e.whole.array("Stats", last-first)
	e.parts = append(e.parts, e.whole.Next(e.whole.Len()), e.groups.Bytes()[e.start(first):e.ends[last-1]])
}

// head writes all of a payload but its buckets. ContainerID and the agent's
// own fields are left out: the agent sets them.
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

// headSize is the most that head and the length of the buckets can take.
func (e *encoder) headSize(o *span.Origin) int {
	e.whole.Reset()
	e.head(o, ^uint64(0))
	return e.whole.Len() + len("Stats") + 8
}
