package wire

import (
	"maps"
	"slices"
)

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
