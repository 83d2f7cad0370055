package wire

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// coldWriter writes the fields of a cold message onto the end of a slice.
type coldWriter struct{ to []byte }

// appendCold appends a whole frame whose body is a map of that many fields,
// which body writes.
func appendCold(dst []byte, t Type, fields int, body func(w *coldWriter)) []byte {
	w := &coldWriter{to: appendMap(beginFrame(dst, t), fields)}
	body(w)
	endFrame(w.to, len(dst))
	return w.to
}

func (w *coldWriter) text(name, v string) { w.to = appendStr(appendStr(w.to, name), v) }

func (w *coldWriter) number(name string, v uint64) { w.to = appendUint(appendStr(w.to, name), v) }

func (w *coldWriter) flag(name string, v bool) { w.to = appendBool(appendStr(w.to, name), v) }

func (w *coldWriter) fields(name string, count int) { w.to = appendMap(appendStr(w.to, name), count) }

// texts writes as much of the list as a reader takes.
func (w *coldWriter) texts(name string, list []string) {
	kept, size := 0, 0
	for kept < min(len(list), maxListElements) && size+len(list[kept]) <= maxListBytes {
		size += len(list[kept])
		kept++
	}
	w.to = appendArray(appendStr(w.to, name), kept)
	for _, s := range list[:kept] {
		w.to = appendStr(w.to, s)
	}
}

func (w *coldWriter) numbers(name string, list []uint64) {
	list = list[:min(len(list), maxListElements)]
	w.to = appendArray(appendStr(w.to, name), len(list))
	for _, v := range list {
		w.to = appendUint(w.to, v)
	}
}

// appendMap writes the header of a map of at most 65535 pairs.
func appendMap(dst []byte, pairs int) []byte {
	if pairs < 16 {
		return append(dst, msgpack.FixMap|byte(pairs))
	}
	return append(dst, msgpack.Map16, byte(pairs>>8), byte(pairs))
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, msgpack.True)
	}
	return append(dst, msgpack.False)
}
