package wire

import "github.com/vmihailenco/msgpack/v5"

// coldWriter writes a cold message with msgpack/v5 onto the end of a slice.
type coldWriter struct {
	to  tail
	enc *msgpack.Encoder
}

// tail is the slice, as the library wants to write to it. It never fails.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	return len(p), nil
}

func (t *tail) WriteByte(c byte) error {
	*t = append(*t, c)
	return nil
}

// appendCold appends a whole frame whose body is a map of that many fields,
// which body writes.
func appendCold(dst []byte, t Type, fields int, body func(w *coldWriter)) []byte {
	w := &coldWriter{to: beginFrame(dst, t)}
	w.enc = msgpack.NewEncoder(&w.to)
	w.check(w.enc.EncodeMapLen(fields))
	body(w)
	endFrame(w.to, len(dst))
	return w.to
}

func (w *coldWriter) name(name string) { w.check(w.enc.EncodeString(name)) }

func (w *coldWriter) text(name, v string) {
	w.name(name)
	w.check(w.enc.EncodeString(v))
}

func (w *coldWriter) number(name string, v uint64) {
	w.name(name)
	w.check(w.enc.EncodeUint(v))
}

func (w *coldWriter) flag(name string, v bool) {
	w.name(name)
	w.check(w.enc.EncodeBool(v))
}

func (w *coldWriter) fields(name string, count int) {
	w.name(name)
	w.check(w.enc.EncodeMapLen(count))
}

// texts writes as much of the list as a reader takes.
func (w *coldWriter) texts(name string, list []string) {
	kept, size := 0, 0
	for kept < min(len(list), maxListElements) && size+len(list[kept]) <= maxListBytes {
		size += len(list[kept])
		kept++
	}
	w.name(name)
	w.check(w.enc.EncodeArrayLen(kept))
	for _, s := range list[:kept] {
		w.check(w.enc.EncodeString(s))
	}
}

func (w *coldWriter) numbers(name string, list []uint64) {
	list = list[:min(len(list), maxListElements)]
	w.name(name)
	w.check(w.enc.EncodeArrayLen(len(list)))
	for _, v := range list {
		w.check(w.enc.EncodeUint(v))
	}
}

// check is for an error that cannot be: memory takes every write.
func (w *coldWriter) check(err error) {
	if err != nil {
		panic("BUG: writing a message to memory failed: " + err.Error())
	}
}
