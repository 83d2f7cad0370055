package relay

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// lengthField precedes the body's length, as Go's HTTP packages write it. endOfHead separates
// head and body.
var lengthField, endOfHead = []byte("\r\nContent-Length: "), []byte("\r\n\r\n")

// readMessage reads one HTTP message with a Content-Length into buf, which grows as needed. It
// expects no data after the message, because the peer does not pipeline.
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

// messageLength returns the total length of head and body, or -1 while the head is incomplete.
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
