package wire

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
