package tracestate

import "bytes"

// Memo remembers the last tracestate that was read: spans of one trace have one, and stand
// together.
type Memo struct {
	text  []byte
	state State
}

// Read reads a tracestate, which is good as long as its text is.
func (m *Memo) Read(text []byte) *State {
	if m.text == nil || !bytes.Equal(m.text, text) {
		m.text, m.state = text, Read(text)
	}
	return &m.state
}

// Forget lets go of the text.
func (m *Memo) Forget() { *m = Memo{} }
