package wire

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
