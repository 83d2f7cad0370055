package wire

import (
	"maps"
	"slices"
)

// Bye is the last message of whoever sends it. The daemon says in it why it
// closes.
type Bye struct {
	Reason   string
	Detail   string   // for a person
	Versions []uint64 // with the reason "version": those that the daemon speaks
}

// AppendBye appends a whole frame. What is empty it leaves out.
func AppendBye(dst []byte, m *Bye) []byte {
	fields := 1
	if m.Detail != "" {
		fields++
	}
	if len(m.Versions) != 0 {
		fields++
	}
	return appendCold(dst, TypeBye, fields, func(w *coldWriter) {
		w.text("reason", m.Reason)
		if m.Detail != "" {
			w.text("detail", m.Detail)
		}
		if len(m.Versions) != 0 {
			w.numbers("versions", m.Versions)
		}
	})
}

// DecodeBye reads a bye's body.
func DecodeBye(body []byte) (Bye, error) {
	return readCold(TypeBye, body, func(r *coldReader, m *Bye, name string) {
		switch name {
		case "reason":
			m.Reason = r.text()
		case "detail":
			m.Detail = r.text()
		case "versions":
			m.Versions = r.numbers()
		default:
			r.Skip()
		}
	})
}

// MaxLost is the most reasons that one lost message may hold.
const MaxLost = 32

// Lost is how many spans a tracer had to drop since its last report, by reason.
type Lost map[string]uint64

// AppendLost appends a whole frame, the reasons in order. More than MaxLost of
// them the reader refuses: send them in two messages.
func AppendLost(dst []byte, m Lost) []byte {
	return appendCold(dst, TypeLost, len(m), func(w *coldWriter) {
		for _, reason := range slices.Sorted(maps.Keys(m)) {
			w.number(reason, m[reason])
		}
	})
}

// DecodeLost reads the body of a lost message.
func DecodeLost(body []byte) (Lost, error) {
	m := Lost{}
	_, err := readCold(TypeLost, body, func(r *coldReader, _ *Lost, reason string) {
		m[reason] = r.number()
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
	ID    uint64 // the tracer's choice; the answer repeats it
	OK    bool   // in an answer: whether the agent accepted everything
	Error string // in an answer: why not
}

// AppendFlush appends the whole frame of a request, which holds the id only.
func AppendFlush(dst []byte, m *Flush) []byte {
	return appendCold(dst, TypeFlush, 1, func(w *coldWriter) {
		w.number("id", m.ID)
	})
}

// AppendFlushAnswer appends the whole frame of an answer.
func AppendFlushAnswer(dst []byte, m *Flush) []byte {
	return appendCold(dst, TypeFlush, 3, func(w *coldWriter) {
		w.number("id", m.ID)
		w.flag("ok", m.OK)
		w.text("error", m.Error)
	})
}

// DecodeFlush reads the body of a request or of an answer.
func DecodeFlush(body []byte) (Flush, error) {
	return readCold(TypeFlush, body, func(r *coldReader, m *Flush, name string) {
		switch name {
		case "id":
			m.ID = r.number()
		case "ok":
			m.OK = r.flag()
		case "error":
			m.Error = r.text()
		default:
			r.Skip()
		}
	})
}
