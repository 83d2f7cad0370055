package otlp

import (
	"encoding/binary"
	"errors"
)

// prefixLen is what a message of gRPC has before it: whether it is compressed, and its
// length.
const prefixLen = 5

var (
	errPrefix = errors.New("read message: it has no prefix of 5 bytes")
	errFlag   = errors.New("read message: its first byte is neither 0 nor 1")
	errLength = errors.New("read message: its length is not what its prefix says, or there are several")
)

// unframe returns the one message that the body of a unary call has.
func unframe(body []byte) (message []byte, isPacked bool, err error) {
	if len(body) < prefixLen {
		return nil, false, errPrefix
	}
	if body[0] > 1 {
		return nil, false, errFlag
	}
	message = body[prefixLen:]
	if uint64(len(message)) != uint64(binary.BigEndian.Uint32(body[1:])) {
		return nil, false, errLength
	}
	return message, body[0] == 1, nil
}

// prefix is what stands before a message of so many bytes.
func prefix(length int, isPacked bool) (p [prefixLen]byte) {
	if isPacked {
		p[0] = 1
	}
	binary.BigEndian.PutUint32(p[1:], uint32(length))
	return p
}
