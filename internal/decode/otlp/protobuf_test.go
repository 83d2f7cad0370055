package otlp

import "testing"

// TestFields_FastPath compares the fast path of readField with readAnyField for all
// fields that begin with the same two bytes, and for all lengths of the message.
func TestFields_FastPath(t *testing.T) {
	for first := range 256 {
		for second := range 256 {
			message := []byte{0xff, byte(first), byte(second), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
			for end := 1; end <= len(message); end++ {
				got, next := readField(message[:end], 1)
				if want, after := readAnyField(message[:end], 1); next != after || next != 0 &&
					got != want {
					t.Fatalf("%x is read as %+v up to %d, want %+v up to %d", message[1:end], got, next, want,
						after)
				}
			}
		}
	}
}
