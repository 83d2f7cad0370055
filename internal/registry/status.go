package registry

import (
	"strconv"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// status judges an HTTP status, which is a number in a key and a label here, by its digits:
// nothing keeps a tracer from sending any number. One that gets no place is absent, since
// there is no number that would say that it is blocked.
func (j *judge) status(number uint32) {
	const l = span.LabelHTTPStatus
	switch {
	case number == 0:
		return
	case number == j.lastStatus.number && j.gates.of(l).asks() == firstSight:
		j.words[wordStatus] = j.lastStatus.id
		return
	}
	digits := strconv.AppendUint(j.digits[:0], uint64(number), 10)
	text := unsafe.String(unsafe.SliceData(digits), len(digits)) // which nobody keeps
	id, ok := j.lookUp(l, text)
	if ok {
		j.lastStatus = foundStatus{number, id}
		j.words[wordStatus] = id
		return
	}
	j.words[wordStatus] = j.newValue(l, text, wordStatus)
}

// foundStatus is a status that was found.
type foundStatus struct {
	number uint32
	id     labelID
}

// statusOf is the number of a status again.
func statusOf(digits string) uint32 {
	number, _ := strconv.ParseUint(digits, 10, 32)
	return uint32(number)
}
