package bodies

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
)

// Inflater undoes gzip. Its memory, some 50 KiB, serves one message after the other.
type Inflater struct {
	from bytes.Reader
	gzip gzip.Reader
}

// InflaterBytes is what an inflater keeps, and takes to undo gzip.
const InflaterBytes = 2 << 20

// errPacked says that a message is not what its sender says it is.
var errPacked = errors.New("inflate message: it is no gzip")

// Inflate writes what a message is without gzip into a body of its own, which is bounded
// as any other is: what inflates to more costs its sender that request. The caller releases
// the body, also where there is an error.
func (i *Inflater) Inflate(message []byte, into *Pool) (*Body, error) {
	i.from.Reset(message)
	defer i.from.Reset(nil)
	if err := i.gzip.Reset(&i.from); err != nil {
		return &Body{}, errPacked
	}
	plain, err := into.Read(&i.gzip, -1, nil)
	if err != nil && !errors.Is(err, ErrNoRoom) {
		return plain, fmt.Errorf("%w: %w", errPacked, err)
	}
	return plain, err
}
