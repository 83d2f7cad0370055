package relay

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestMessages_SplitReads: a message is read completely however it is split into reads, and
// its buffer is reused for the next message. A message without a length is rejected.
func TestMessages_SplitReads(t *testing.T) {
	buf := make([]byte, 16)
	for _, size := range []int{0, 1, 100, 70_000} {
		sent := fmt.Sprintf("PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nA: b\r\n\r\n%s",
			size, strings.Repeat("\r\n\r\nx", size)[:size])
		for name, from := range map[string]io.Reader{
			"whole": strings.NewReader(sent),
			"cut":   iotest.OneByteReader(strings.NewReader(sent)),
		} {
			message, grown, err := readMessage(from, buf)
			if err != nil || string(message) != sent {
				t.Errorf("%s: of %d bytes %d were read: %v", name, len(sent), len(message), err)
			}
			buf = grown
		}
	}
	if _, _, err := readMessage(strings.NewReader("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), buf); err == nil {
		t.Error("a message without a length was read")
	}
	if _, _, err := readMessage(strings.NewReader("PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"),
		buf); err == nil {
		t.Error("half a message was read")
	}
}
