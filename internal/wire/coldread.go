package wire

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// The largest list in a cold message: what a writer cuts a list to, and what a
// reader refuses to go beyond. The lists are advice to a tracer, so a shorter
// one costs some work and loses nothing.
const (
	maxListElements = 1024
	maxListBytes    = 64 << 10
)

// maxDepth is how many maps and arrays of a cold message may lie in one another.
// Its own are two, three in welcome; the rest is for what later versions add.
const maxDepth = 8

// coldReader reads the fields of a cold message into values of their own. A nil reads
// as the zero value everywhere. The first fault sticks, and nothing is read after it.
type coldReader struct {
	msgpack.Reader
	doing string
	body  []byte
	err   error
}

// readCold hands each entry of a body that is a map to field, whose reader then
// stands at the entry's value. After an error the message is the zero one.
func readCold[M any](t Type, body []byte, field func(r *coldReader, m *M, name string)) (m M, err error) {
	doing := "decode " + t.String()
	if err := validate(doing, body); err != nil {
		return m, err
	}
	r := &coldReader{Reader: msgpack.NewReader(body), doing: doing, body: body}
	r.fields(func(r *coldReader, name string) { field(r, &m, name) })
	if r.err != nil {
		m = *new(M)
	}
	return m, r.err
}

// validate checks that body is one whole value with nothing after it, nested no
// deeper than maxDepth: also what no field of this version reads.
func validate(doing string, body []byte) error {
	r := msgpack.NewReader(body)
	if r.SkipWithin(maxDepth); r.Failed() {
		return malformed(doing, "expected a whole value, nested no deeper than %d, found %s", maxDepth, found(body, r.At()))
	}
	if r.Left() != 0 {
		return malformed(doing, "%d bytes follow its one value", r.Left())
	}
	return nil
}

// fields reads a map whose keys are strings. A key that comes twice is read
// twice, so its last value stands.
func (r *coldReader) fields(field func(r *coldReader, name string)) {
	for count := value(r, r.Map, "a map"); count > 0 && r.err == nil; count-- {
		name := r.Str()
		if r.expect("a string as a field's name"); r.err == nil {
			field(r, string(name.Of(r.body)))
		}
	}
}

// value reads a value that is not nil, and says what it should have been.
func value[V any](r *coldReader, read func() V, what string) (v V) {
	if r.IsNil() {
		return v
	}
	v = read()
	r.expect(what)
	return v
}

func (r *coldReader) text() string { return string(value(r, r.Str, "a string").Of(r.body)) }

func (r *coldReader) number() uint64 { return r.numberTo(math.MaxUint64) }

// size reads a number that is a size in memory.
func (r *coldReader) size() int { return int(r.numberTo(math.MaxInt32)) }

func (r *coldReader) numberTo(most uint64) uint64 {
	return value(r, func() uint64 { return r.Uint(most) }, "an integer that is not negative, and a size below 2^31")
}

func (r *coldReader) flag() bool { return value(r, r.Bool, "a boolean") }

func (r *coldReader) texts() []string {
	var list []string
	size := 0
	r.list(func() {
		s := r.text()
		if size += len(s); size > maxListBytes {
			r.fault("expected a list of at most %d bytes", maxListBytes)
		}
		list = append(list, s)
	})
	return list
}

func (r *coldReader) numbers() []uint64 {
	var list []uint64
	r.list(func() { list = append(list, r.number()) })
	return list
}

func (r *coldReader) list(element func()) {
	count := value(r, r.Array, "an array")
	if count > maxListElements {
		r.fault("expected a list of at most %d elements, found %d", maxListElements, count)
	}
	for ; count > 0 && r.err == nil; count-- {
		element()
	}
}

// expect says what should have stood where the reader met a fault.
func (r *coldReader) expect(what string) {
	if r.Failed() {
		r.fault("expected %s, found %s", what, found(r.body, r.At()))
	}
}

func (r *coldReader) fault(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(r.doing, format, args...)
		r.Fail()
	}
}
