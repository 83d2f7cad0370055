package bodies

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Inflater undoes compression. Its memory serves one message after the other: some 50 KiB of gzip, and
// of the others, which are made when the first message comes, some 150 KiB of snappy and as much of zstd.
type Inflater struct {
	from   bytes.Reader
	gzip   gzip.Reader
	zstd   *zstd.Decoder
	snappy *s2.Reader
}

// InflaterBytes is what an inflater keeps, and takes to undo compression.
const InflaterBytes = 2 << 20

const (
	// maxWindow is the longest of zstd that HTTP has, by RFC 9659. It is no memory of the inflater's: what
	// a message is without zstd lies in one piece, and so is its own window.
	maxWindow = 8 << 20
	// snappyFrame is the longest that a frame of snappy may be without it.
	snappyFrame = 64 << 10
	// zstdBlock is the longest of its blocks, and what the library wants behind one.
	zstdBlock = 128<<10 + 1<<10
	// leastZstd is the length of the shortest message.
	leastZstd = 9
	// zstdShrinks is how many times shorter zstd makes what SDKs send, or more.
	zstdShrinks = 4
)

// errPacked says that a message is not what its sender says it is.
var errPacked = errors.New("inflate message")

// Inflate writes what a message is without compression into a body of its own, which is bounded
// as any other is: what inflates to more costs its sender that request. The caller releases
// the body, also where there is an error.
func (i *Inflater) Inflate(message []byte, packing Packing, into *Pool) (plain *Body, err error) {
	i.from.Reset(message)
	defer i.from.Reset(nil)
	packing = packing.Of(message)
	switch packing {
	case Gzip:
		if plain, err = (&Body{}), i.gzip.Reset(&i.from); err == nil {
			plain, err = into.Read(&i.gzip, -1, nil)
		}
	case Zstd:
		plain, err = i.unzstd(message, into)
	case Snappy:
		plain, err = unsnap(message, into)
	case SnappyFramed:
		plain, err = i.unframe(message, into)
	default:
		panic("BUG: a message that is not compressed is inflated")
	}
	if err != nil && !errors.Is(err, ErrNoRoom) {
		err = fmt.Errorf("%w: it is no %s: %w", errPacked, packing, err)
	}
	return plain, err
}

// unframe undoes frames of snappy. The library reads those of another format as well.
func (i *Inflater) unframe(message []byte, into *Pool) (*Body, error) {
	if !bytes.HasPrefix(message, snappyFrames) {
		return &Body{}, snappy.ErrCorrupt
	}
	if i.snappy == nil {
		i.snappy = s2.NewReader(nil, s2.ReaderMaxBlockSize(snappyFrame))
	}
	i.snappy.Reset(&i.from)
	defer i.snappy.Reset(nil)
	return into.Read(i.snappy, -1, nil)
}

// unsnap undoes one block, whose length stands before it.
func unsnap(message []byte, into *Pool) (*Body, error) {
	length, err := snappy.DecodedLen(message)
	switch {
	case err != nil:
		return &Body{}, err //nolint:wrapcheck // Inflate does
	case int64(length) > into.maxBody:
		return &Body{}, ErrTooLarge
	}
	plain := into.Take(max(length, 1))
	if plain == nil {
		return &Body{}, ErrNoRoom
	}
	plain.Bytes, err = snappy.DecodeStrict(plain.Bytes, message)
	return plain, err //nolint:wrapcheck // the same
}

// unzstd undoes zstd in one piece, which is made twice as long, and tried anew, as long as its length may be
// what is wrong: a block that does not fit looks like one that is none.
func (i *Inflater) unzstd(message []byte, into *Pool) (*Body, error) {
	if i.zstd == nil {
		i.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true)) // they are options
	}
	if len(message) < leastZstd {
		return &Body{}, io.ErrUnexpectedEOF
	}
	most := int(into.maxBody) + zstdBlock
	for room := max(FirstBuffer, zstdShrinks*len(message)); ; room *= 2 {
		room = min(room, most)
		plain := into.Take(room)
		if plain == nil {
			return &Body{}, ErrNoRoom
		}
		inflated, err := i.zstd.DecodeAll(message, plain.Bytes[:0:room])
		isShort := err != nil &&
			(errors.Is(err, zstd.ErrDecoderSizeExceeded) || room-len(inflated) < zstdBlock)
		switch {
		case isShort && room < most:
			plain.Release()
			continue
		case isShort, int64(len(inflated)) > into.maxBody:
			return plain, ErrTooLarge
		case err == nil:
			plain.Bytes = inflated
		}
		return plain, err //nolint:wrapcheck // the same
	}
}
