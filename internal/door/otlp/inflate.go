package otlp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
)

// inflater undoes gzip. Its memory, some 50 KiB, serves one message after the other.
type inflater struct {
	from bytes.Reader
	gzip gzip.Reader
}

// errPacked says that a message is not what its sender says it is.
var errPacked = errors.New("inflate message: it is no gzip")

// inflate writes what a message is without gzip into a body of its own, which is bounded
// as any other is: what inflates to more costs its sender that request. The caller releases
// the body, also where there is an error.
func (i *inflater) inflate(message []byte, from *bodies.Pool) (*bodies.Body, error) {
	i.from.Reset(message)
	defer i.from.Reset(nil)
	if err := i.gzip.Reset(&i.from); err != nil {
		return &bodies.Body{}, errPacked
	}
	plain, err := from.Read(&i.gzip, -1)
	if err != nil && !errors.Is(err, bodies.ErrNoRoom) {
		return plain, fmt.Errorf("%w: %w", errPacked, err)
	}
	return plain, err //nolint:wrapcheck // the pool's own words
}
