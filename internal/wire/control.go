package wire

import (
	"maps"
	"slices"
)

// Bye is the last message of whoever sends it. The daemon says in it why it
// closes.
type Bye struct {
	Reason   string   `wire:"reason"`
	Detail   string   `wire:"detail,omitzero"`   // for a person
	Versions []uint64 `wire:"versions,omitzero"` // with the reason "version": those that the daemon speaks
}

// AppendBye appends a whole frame.
func AppendBye(dst []byte, m *Bye) []byte { return appendCold(dst, TypeBye, m) }

// DecodeBye reads a bye's body.
func DecodeBye(body []byte) (Bye, error) { return readCold[Bye](TypeBye, body) }

// MaxLost is the most reasons that one lost message may hold.
const MaxLost = 32

// MaxLostSpans is the most spans that one reason may stand for in a message: eight years
// of a million a second. A larger number is a subtraction that went wrong.
const MaxLostSpans = 1 << 48

// Lost is how many spans a tracer had to drop since its last report, by reason.
type Lost map[string]uint64

// AppendLost appends a whole frame, the reasons in order. More than MaxLost of
// them the reader refuses: send them in two messages.
func AppendLost(dst []byte, m Lost) []byte {
	start := len(dst)
	dst = appendMap(beginFrame(dst, TypeLost), len(m))
	for _, reason := range slices.Sorted(maps.Keys(m)) {
		dst = appendUint(appendStr(dst, reason), m[reason])
	}
	endFrame(dst, start)
	return dst
}

// DecodeLost reads the body of a lost message.
func DecodeLost(body []byte) (Lost, error) {
	m := Lost{}
	err := readMap(TypeLost, body, func(r *coldReader, reason string) {
		m[reason] = r.number(MaxLostSpans)
		if len(m) > MaxLost {
			r.fault("expected at most %d reasons", MaxLost)
		}
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Flush asks the daemon to report now, and is its answer once every payload of
// that report has had its outcome.
type Flush struct {
	ID    uint64 `wire:"id"`    // the tracer's choice; the answer repeats it
	OK    bool   `wire:"ok"`    // in an answer: whether the agent accepted everything
	Error string `wire:"error"` // in an answer: why not
}

// AppendFlush appends the whole frame of a request, which holds the id only.
func AppendFlush(dst []byte, m *Flush) []byte {
	return appendCold(dst, TypeFlush, &struct {
		ID uint64 `wire:"id"`
	}{m.ID})
}

// AppendFlushAnswer appends the whole frame of an answer.
func AppendFlushAnswer(dst []byte, m *Flush) []byte { return appendCold(dst, TypeFlush, m) }

// DecodeFlush reads the body of a request or of an answer.
func DecodeFlush(body []byte) (Flush, error) { return readCold[Flush](TypeFlush, body) }
