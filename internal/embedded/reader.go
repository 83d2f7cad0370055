package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// maxElements is what the agent takes of one array, map or binary.
	maxElements = 500_000
	// maxDepth bounds what is skipped under an unknown key.
	maxDepth = 64
)

var errShort = errors.New("the message ends too early")

// reader takes msgpack apart the way the agent's generated decoder does: any
// width of an integer, and otherwise exactly the type that it expects.
type reader struct {
	rest []byte
}

// take removes n bytes.
func (r *reader) take(n int) ([]byte, error) {
	if n > len(r.rest) {
		return nil, errShort
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken, nil
}

// big reads a big-endian unsigned integer of n bytes.
func (r *reader) big(n int) (uint64, error) {
	raw, err := r.take(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-n:], raw)
	return binary.BigEndian.Uint64(wide[:]), nil
}

func (r *reader) lead() (byte, error) {
	lead, err := r.take(1)
	if err != nil {
		return 0, err
	}
	return lead[0], nil
}

// nextIsNil consumes a nil if one stands next.
func (r *reader) nextIsNil() bool {
	if len(r.rest) > 0 && r.rest[0] == 0xc0 {
		r.rest = r.rest[1:]
		return true
	}
	return false
}

// sized reads the length of a value whose lead byte is one of a family: a
// fixed form with the length in its low bits, or 1, 2 and 4 bytes after
// consecutive lead bytes from first on, beginning with narrowest bytes.
func (r *reader) sized(what string, fixed, mask, first byte, narrowest int) (int, error) {
	lead, err := r.lead()
	if err != nil {
		return 0, err
	}
	if mask != 0 && lead&^mask == fixed {
		return int(lead & mask), nil
	}
	for width, form := narrowest, first; width <= 4; width, form = width*2, form+1 {
		if lead == form {
			n, err := r.big(width)
			return int(n), err
		}
	}
	return 0, fmt.Errorf("lead byte %#x where %s is expected", lead, what)
}

func (r *reader) text() (string, error) {
	n, err := r.sized("a string", 0xa0, 0x1f, 0xd9, 1)
	if err != nil {
		return "", err
	}
	raw, err := r.take(n)
	return string(raw), err
}

func (r *reader) binary() ([]byte, error) {
	n, err := r.sized("binary", 0, 0, 0xc4, 1)
	if err != nil {
		return nil, err
	}
	return r.take(n)
}

func (r *reader) array() (int, error) {
	return r.elements(r.sized("an array", 0x90, 0x0f, 0xdc, 2))
}

func (r *reader) mapping() (int, error) {
	return r.elements(r.sized("a map", 0x80, 0x0f, 0xde, 2))
}

// elements refuses more than the agent would read, or than can be there.
func (r *reader) elements(n int, err error) (int, error) {
	switch {
	case err != nil:
		return 0, err
	case n > maxElements:
		return 0, fmt.Errorf("%d elements, at most %d are read", n, maxElements)
	case n > len(r.rest):
		return 0, errShort
	}
	return n, nil
}

func (r *reader) flag() (bool, error) {
	lead, err := r.lead()
	if err == nil && lead != 0xc2 && lead != 0xc3 {
		err = fmt.Errorf("lead byte %#x where a bool is expected", lead)
	}
	return lead == 0xc3, err
}

// unsigned reads an integer of any width and sign that holds at most limit.
func (r *reader) unsigned(limit uint64) (uint64, error) {
	lead, err := r.lead()
	if err != nil {
		return 0, err
	}
	var n uint64
	switch {
	case lead <= 0x7f:
		n = uint64(lead)
	case lead >= 0xe0:
		return 0, errors.New("a negative integer where only others are possible")
	case lead >= 0xcc && lead <= 0xcf:
		n, err = r.big(1 << (lead - 0xcc))
	case lead >= 0xd0 && lead <= 0xd3:
		width := 1 << (lead - 0xd0)
		if n, err = r.big(width); err == nil && n>>(8*width-1) != 0 {
			err = errors.New("a negative integer where only others are possible")
		}
	default:
		err = fmt.Errorf("lead byte %#x where an integer is expected", lead)
	}
	if err == nil && n > limit {
		err = fmt.Errorf("integer %d, at most %d is possible", n, limit)
	}
	return n, err
}

// signed reads an integer of any width that a field of the given bits holds.
func (r *reader) signed(bits int) (int64, error) {
	if len(r.rest) == 0 {
		return 0, errShort
	}
	lead := r.rest[0]
	var n int64
	switch {
	case lead >= 0xe0:
		r.rest = r.rest[1:]
		return int64(int8(lead)), nil
	case lead >= 0xd0 && lead <= 0xd3:
		r.rest = r.rest[1:]
		width := 1 << (lead - 0xd0)
		raw, err := r.big(width)
		if err != nil {
			return 0, err
		}
		n = int64(raw<<(64-8*width)) >> (64 - 8*width)
	default:
		raw, err := r.unsigned(math.MaxInt64)
		if err != nil {
			return 0, err
		}
		n = int64(raw)
	}
	if shift := 64 - bits; n<<shift>>shift != n {
		return 0, fmt.Errorf("integer %d does not fit in %d bits", n, bits)
	}
	return n, nil
}
