package relay

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// lengthField is what comes before a body's length, as Go's HTTP writes it.
var lengthField, endOfHead = []byte("\r\nContent-Length: "), []byte("\r\n\r\n")

// readMessage reads a message that states its length into a buffer, which grows to hold it,
// and where nothing follows before it was answered.
func readMessage(from io.Reader, buf []byte) (message, grown []byte, err error) {
	length, read := -1, 0
	for length < 0 || read < length {
		if read == len(buf) {
			buf = slices.Grow(buf, max(length, 2*read)-read)
			buf = buf[:cap(buf)]
		}
		n, err := from.Read(buf[read:])
		if err != nil {
			return nil, buf, err
		}
		read += n
		if length < 0 {
			if length, err = messageLength(buf[:read]); err != nil {
				return nil, buf, err
			}
		}
	}
	return buf[:read], buf, nil
}

// messageLength is that of head and body, -1 while the head has not come whole.
func messageLength(text []byte) (int, error) {
	head, _, isWhole := bytes.Cut(text, endOfHead)
	if !isWhole {
		return -1, nil
	}
	_, rest, _ := bytes.Cut(head, lengthField)
	digits, _, _ := bytes.Cut(rest, endOfHead[:2])
	body, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0, fmt.Errorf("read message: it does not state its length: %w", err)
	}
	return len(head) + len(endOfHead) + body, nil
}
