package otlp

import "testing"

// TestAnAnswerThatIsNoEndIsNone: what was counted is known again where its answer was not
// written, or says try again; of HTTP/2 and of HTTP/1.1.
func TestAnAnswerThatIsNoEndIsNone(t *testing.T) {
	h := newHarness(t, nil)
	for i, c := range []struct {
		isWritten, isFinal, isKnown bool
	}{{true, true, false}, {false, true, true}, {true, false, true}, {false, false, true}} {
		sum := uint64(i + 1)
		h.counted.Once(sum, func(counted func()) { counted() })
		h.awaitReceipt(nil, sum, c.isWritten, c.isFinal)
		if known := h.counted.Once(sum, func(func()) {}); known != c.isKnown {
			t.Errorf("%+v: known %v", c, known)
		} else if known {
			h.counted.Close(sum, true)
		}
	}
}
