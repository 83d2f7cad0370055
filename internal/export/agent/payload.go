package agent

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// encoder encodes sealed cycles as payloads. Its memory is reused for the next cycle. It is not
// safe for concurrent use.
//
// A payload contains a head with the origin, and buckets. A bucket is a head with a start time, and groups. A
// group has the counters of one label set.
type encoder struct {
	groupWriter groupEncoder
	groups      []group // groups of the payload, encoded by groupWriter
	head        *fields // head of the payload or of a bucket, while it is encoded
	sequence    uint64  // number of the next payload of any origin
}

// group is an encoded row.
type group struct {
	row        *export.Row
	start, end int // position in the bytes of encoder.groupWriter
}

func newEncoder() *encoder {
	return &encoder{
		groupWriter: groupEncoder{fields: newFields()},
		head:        newFields(),
	}
}

// encode encodes the counts of a cycle, one export interval, as payloads, and passes each payload to emit. A
// payload contains the counts of only one origin, the process that sends the spans. The result contains the number
// of spans that do not fit in any payload.
func (e *encoder) encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	e.groupWriter.beginCycle(c.Sealed)
	var encoded export.Encoded
	remaining := c.SpanRows()
	for len(remaining) > 0 {
		rows := rowsOfFirstOrigin(remaining)
		encoded.Unencodable += e.encodeOrigin(c, rows, emit)
		remaining = remaining[len(rows):]
	}
	return encoded
}

// rowsOfFirstOrigin returns the leading rows that have the same origin as the first one.
func rowsOfFirstOrigin(rows []export.Row) []export.Row {
	origin := rows[0].Origin()
	for i := range rows {
		if rows[i].Origin() != origin {
			return rows[:i]
		}
	}
	return rows
}

// encodeOrigin encodes rows, which must all be from the same process, as one or more payloads of at most c.Limit
// bytes. It passes each payload to emit. It skips each row that is too large for a payload, and returns the number of
// spans in skipped rows.
func (e *encoder) encodeOrigin(
	c *export.Cycle, rows []export.Row, emit func(*export.Payload),
) (unencodable uint64) {
	origin := &c.Origins[rows[0].Origin()]
	maxBytes := c.Limit - e.maxHeadBytes(origin)
	for len(rows) > 0 {
		consumedRows, skippedSpans := e.encodeGroups(rows, maxBytes)
		if len(e.groups) > 0 { // not all rows were skipped
			emit(e.newPayload(origin, uint64(c.Width)))
		}
		rows = rows[consumedRows:]
		unencodable += skippedSpans
	}
	return unencodable
}

// maxBucketHeadBytes is the maximum length of a bucket without its groups.
const maxBucketHeadBytes = 64

// encodeGroups encodes rows, the counters of one label set each, until one payload is full, and sets e.groups to the
// encoded rows. maxBytes is the maximum length of all buckets of a payload together. A row that exceeds it alone is
// skipped. consumedRows is the number of rows that were encoded or skipped, and skippedSpans the number of spans in
// skipped rows.
func (e *encoder) encodeGroups(rows []export.Row, maxBytes int) (consumedRows int, skippedSpans uint64) {
	e.groupWriter.Reset()
	e.groups = e.groups[:0]
	freeBytes := maxBytes
	for i := range rows {
		row := &rows[i]
		start := e.groupWriter.Len()
		e.groupWriter.writeGroup(row)
		end := e.groupWriter.Len()

		groupBytes := end - start
		isTooLarge := groupBytes+maxBucketHeadBytes > maxBytes // for any payload
		if isTooLarge {
			e.groupWriter.Truncate(start)
			skippedSpans += row.Spans
			continue
		}
		neededBytes := groupBytes + e.bucketHeadBytes(row) // the head is needed unless row continues the last bucket
		if neededBytes > freeBytes {                       // the next payload begins with this row
			e.groupWriter.Truncate(start)
			return i, skippedSpans
		}
		freeBytes -= neededBytes
		e.groups = append(e.groups, group{row, start, end})
	}
	return len(rows), skippedSpans
}

// bucketHeadBytes returns the maximum length of the bucket head that must precede row in the payload. It returns 0 if row
// can be in the same bucket as the last group of the payload.
func (e *encoder) bucketHeadBytes(row *export.Row) int {
	if len(e.groups) > 0 {
		last := e.groups[len(e.groups)-1]
		if sameBucket(last.row, row) {
			return 0
		}
	}
	return maxBucketHeadBytes
}

// sameBucket reports whether the groups of two rows can be in one bucket of a payload. They need the same start
// time. They also need the same span type and the same mapping of durations to sketch bins, because the agent
// merges groups of one bucket that differ only in these.
func sameBucket(a, b *export.Row) bool {
	return a.Bucket() == b.Bucket() && a.Mapping() == b.Mapping() && a.Key().Type == b.Key().Type
}

// newPayload returns a payload with the groups that encodeGroups has encoded. It divides them into buckets: each bucket
// contains the groups of one period, which is width nanoseconds long. The payload gets the next sequence number.
func (e *encoder) newPayload(origin *span.Origin, width uint64) *export.Payload {
	bucketCount, spans := e.countBuckets()
	e.head.Reset()
	e.writeHead(origin, e.sequence, bucketCount)
	e.sequence++

	maxBytes := e.head.Len() + bucketCount*maxBucketHeadBytes + e.groupWriter.Len()
	body := append(make([]byte, 0, maxBytes), e.head.Bytes()...)
	remaining := e.groups
	for len(remaining) > 0 {
		bucket := groupsOfFirstBucket(remaining)
		body = e.appendBucket(body, bucket, width)
		remaining = remaining[len(bucket):]
	}
	clear(e.groups) // so that the memory of the rows can be freed after the cycle
	return &export.Payload{Origin: *origin, Body: body, Spans: spans}
}

// countBuckets returns the numbers of buckets and of spans in the payload.
func (e *encoder) countBuckets() (buckets int, spans uint64) {
	for i, g := range e.groups {
		if i == 0 || !sameBucket(e.groups[i-1].row, g.row) {
			buckets++
		}
		spans += g.row.Spans
	}
	return buckets, spans
}

// groupsOfFirstBucket returns the leading groups that share a bucket with the first one.
func groupsOfFirstBucket(groups []group) []group {
	for i := range groups {
		if !sameBucket(groups[0].row, groups[i].row) {
			return groups[:i]
		}
	}
	return groups
}

// appendBucket appends a bucket, the counters of one period, to body: a head with the start and the length of the
// period, and the groups, which e.groupWriter has encoded one after the other. width is the length of the period in
// nanoseconds.
func (e *encoder) appendBucket(body []byte, groups []group, width uint64) []byte {
	first, last := groups[0], groups[len(groups)-1]
	startTime := max(0, first.row.Bucket()) // nanoseconds since the Unix epoch; the format has no negative times
	e.head.Reset()
	const fieldCount = 3
	e.head.beginMap(fieldCount)
	e.head.number("Start", uint64(startTime))
	e.head.number("Duration", width)
	e.head.beginArray("Stats", len(groups)) // the groups are its elements
	body = append(body, e.head.Bytes()...)

	encodedGroups := e.groupWriter.Bytes()[first.start:last.end]
	return append(body, encodedGroups...)
}

// writeHead writes a payload without its buckets: a MessagePack map that describes the process that sends the spans.
// The last field is an array of the given number of buckets; the caller must write these after it. The agent sets
// the remaining fields, such as ContainerID, itself.
func (e *encoder) writeHead(origin *span.Origin, sequence uint64, buckets int) {
	const fieldCount = 11
	e.head.beginMap(fieldCount)
	e.head.text("Hostname", origin.Host)
	e.head.text("Env", origin.Env)
	e.head.text("Version", origin.Version)
	e.head.text("Lang", origin.Lang)
	e.head.text("TracerVersion", origin.TracerVersion)
	e.head.text("RuntimeID", origin.RuntimeID)
	e.head.number("Sequence", sequence)
	e.head.text("Service", origin.Service)
	e.head.text("GitCommitSha", origin.GitCommitSHA)
	e.head.text("ProcessTags", origin.ProcessTags)
	e.head.beginArray("Stats", buckets)
}

// maxHeadBytes returns the maximum length of the output of writeHead for an origin. It overwrites e.head.
func (e *encoder) maxHeadBytes(origin *span.Origin) int {
	e.head.Reset()
	e.writeHead(origin, math.MaxUint64, math.MaxInt32)
	return e.head.Len()
}
