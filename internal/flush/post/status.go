package post

import (
	"iter"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is one field of a protobuf message: its bytes, or its number where it is one.
type Field struct {
	Number protowire.Number
	Bytes  []byte
	Value  uint64
}

// Fields goes through a message, and ends where it is none.
func Fields(message []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(message) > 0 {
			number, kind, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				return
			}
			f, size := Field{Number: number}, 0
			switch rest := message[tag:]; kind {
			case protowire.VarintType:
				f.Value, size = protowire.ConsumeVarint(rest)
			case protowire.Fixed64Type:
				f.Value, size = protowire.ConsumeFixed64(rest)
			case protowire.BytesType:
				f.Bytes, size = protowire.ConsumeBytes(rest)
			default:
				size = protowire.ConsumeFieldValue(number, kind, rest)
			}
			if size < 0 || !yield(f) {
				return
			}
			message = message[tag+size:]
		}
	}
}

// The fields of google.rpc.Status, of the Any in it, of RetryInfo, and of Duration.
const (
	fieldMessage    = 2
	fieldDetails    = 3
	fieldTypeURL    = 1
	fieldAny        = 2
	fieldRetryDelay = 1
	fieldSeconds    = 1
	fieldNanos      = 2
)

// ReadStatus reads a google.rpc.Status: what it says, and how long its RetryInfo has its
// reader wait. What cannot be read says nothing.
func ReadStatus(status []byte) (said string, wait time.Duration) {
	for f := range Fields(status) {
		switch f.Number {
		case fieldMessage:
			said = string(f.Bytes)
		case fieldDetails:
			wait = max(wait, readRetryInfo(f.Bytes))
		}
	}
	return said, wait
}

// readRetryInfo is the wait of an Any that is a RetryInfo, 0 of any other.
func readRetryInfo(detail []byte) (wait time.Duration) {
	isIt := false
	for f := range Fields(detail) {
		switch f.Number {
		case fieldTypeURL:
			isIt = strings.HasSuffix(string(f.Bytes), "/google.rpc.RetryInfo")
		case fieldAny:
			for delay := range Fields(f.Bytes) {
				if delay.Number == fieldRetryDelay {
					wait = readDuration(delay.Bytes)
				}
			}
		}
	}
	if !isIt {
		return 0
	}
	return wait
}

// readDuration reads a Duration, of which a negative part counts nothing, and more than
// MaxRetryAfter is that.
func readDuration(duration []byte) (d time.Duration) {
	for f := range Fields(duration) {
		part := max(0, int64(f.Value))
		switch f.Number {
		case fieldSeconds:
			d += time.Duration(min(part, int64(MaxRetryAfter/time.Second))) * time.Second
		case fieldNanos:
			d += time.Duration(min(part, int64(time.Second)))
		}
	}
	return min(d, MaxRetryAfter)
}
