package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// addString gives a string the next number, if there may be one more.
func (d *values) addString(t spantable.Text, l spantable.Label) {
	s := &d.strings
	if len(s.texts) >= d.table.Limits.Strings {
		d.table.Fail(spantable.ErrTooMuch)
		d.Fail()
		return
	}
	s.texts, s.labels = append(s.texts, t), append(s.labels, l)
}

// numberOf is the number of a string, a new one where the body has not had it. It reports
// whether it is new.
func (d *values) numberOf(t spantable.Text) (number int, isNew bool) {
	s, text := &d.strings, bytesOf(d.body, t)
	if 2*(len(s.texts)+1) > len(s.slots) {
		s.grow(d.body)
	}
	slot := s.slot(d.body, text)
	if *slot != 0 {
		return int(*slot - 1), false
	}
	number = len(s.texts)
	if d.addString(t, d.names.Find(text)); !d.Failed() {
		*slot = uint32(number + 1)
	}
	return number, true
}

// index reads the number of a string.
func (d *values) index() int {
	n := d.Uint(math.MaxUint64)
	if n >= uint64(len(d.strings.texts)) {
		d.Fail()
		return 0
	}
	return int(n)
}

// streamed reads a string, or the number of one that the body has had.
func (d *values) streamed() int {
	if !msgpack.IsStr(d.Lead()) {
		return d.index()
	}
	text := d.Str()
	if d.Failed() {
		return 0
	}
	n, _ := d.numberOf(spantable.Text(text))
	return n
}
