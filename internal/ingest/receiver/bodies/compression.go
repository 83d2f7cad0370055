package bodies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Compression is the compression of a message.
type Compression uint8

const (
	Plain Compression = iota
	Gzip
	Zstd
	// Snappy is the block format. Collectors before 2025 sent the framing format under the same name; see Detect.
	Snappy
	SnappyFramed
)

// Compressions lists the supported values of Content-Encoding, for errors.
const Compressions = "gzip, zstd, snappy, x-snappy-framed"

var compressionNames = [...]string{
	Plain: "identity", Gzip: "gzip", Zstd: "zstd", Snappy: "snappy", SnappyFramed: "x-snappy-framed",
}

// CompressionOf returns the compression for the value of a Content-Encoding header, ignoring case. It returns Plain
// for an empty value. isKnown is false if the compression is not supported.
func CompressionOf(contentEncoding string) (c Compression, isKnown bool) {
	if contentEncoding == "" {
		return Plain, true
	}
	for i, name := range compressionNames {
		if strings.EqualFold(name, contentEncoding) {
			return Compression(i), true
		}
	}
	return Plain, false
}

// String returns the name as a Content-Encoding.
func (c Compression) String() string { return compressionNames[c] }

// Detect returns the actual compression of a message whose Content-Encoding is c. It returns SnappyFramed if c is Snappy
// but the message begins like the snappy framing format. Otherwise it returns c.
func (c Compression) Detect(message []byte) Compression {
	if c == Snappy && bytes.HasPrefix(message, snappyMagic) {
		return SnappyFramed
	}
	return c
}

// snappyMagic is the stream identifier of the snappy framing format. A message in the block format can't begin with it.
var snappyMagic = []byte("\xff\x06\x00\x00sNaPpY")

// Decompressor decompresses messages. It reuses its memory: 50 KiB for gzip, and 150 KiB each for snappy and zstd after
// their first message.
type Decompressor struct {
	source bytes.Reader
	gzip   gzip.Reader
	zstd   *zstd.Decoder
	snappy *s2.Reader
}

// DecompressorBytes is the maximum memory of a Decompressor.
const DecompressorBytes = 2 << 20

const (
	// maxWindow is the largest zstd window in HTTP according to RFC 9659. The decompressor needs no memory
	// for it, because the decompressed message is contiguous and serves as the window.
	maxWindow = 8 << 20
	// snappyFrame is the maximum length of a decompressed snappy frame.
	snappyFrame = 64 << 10
	// zstdBlock is the maximum length of a decompressed zstd block, plus the capacity that the library needs after it.
	zstdBlock = 128<<10 + 1<<10
	// minZstd is the length of the shortest zstd message.
	minZstd = 9
	// zstdRatio is the minimum compression ratio of SDKs' messages with zstd, for the initial capacity.
	zstdRatio = 4
)

// errCompressed is the error of an invalid compressed message.
var errCompressed = errors.New("decompress message")

// errZstdCapacity is the error of a zstd message that may need more memory than it was given.
var errZstdCapacity = errors.New("the capacity may be too small")

// Decompress decompresses a message into a new body from the pool, whose limits apply to it. declared is the
// compression according to the Content-Encoding header, and must not be Plain. The caller must release the body even
// after an error.
func (d *Decompressor) Decompress(message []byte, declared Compression, pool *Pool) (*Body, error) {
	actual := declared.Detect(message)
	plain, err := d.decompress(message, actual, pool)
	isInvalid := err != nil && !errors.Is(err, ErrNoRoom)
	if isInvalid {
		err = fmt.Errorf("%w: it is not valid %s: %w", errCompressed, actual, err)
	}
	return plain, err
}

// decompress decompresses a message whose actual compression is c.
func (d *Decompressor) decompress(message []byte, c Compression, pool *Pool) (*Body, error) {
	switch c {
	case Gzip:
		return d.decompressGzip(message, pool)
	case Zstd:
		return d.decompressZstd(message, pool)
	case Snappy:
		return decompressSnappy(message, pool)
	case SnappyFramed:
		return d.decompressSnappyFrames(message, pool)
	default:
		panic("BUG: a message that is not compressed is decompressed")
	}
}

// decompressGzip decompresses a gzip message, which can have several members.
func (d *Decompressor) decompressGzip(message []byte, pool *Pool) (*Body, error) {
	d.source.Reset(message)
	defer d.source.Reset(nil)
	if err := d.gzip.Reset(&d.source); err != nil {
		return &Body{}, err //nolint:wrapcheck // Decompress does
	}
	return pool.readDecompressed(&d.gzip)
}

// decompressSnappyFrames decompresses a message in the snappy framing format. It returns an error for the s2
// format, which the library could decompress too.
func (d *Decompressor) decompressSnappyFrames(message []byte, pool *Pool) (*Body, error) {
	if !bytes.HasPrefix(message, snappyMagic) {
		return &Body{}, snappy.ErrCorrupt
	}
	if d.snappy == nil {
		d.snappy = s2.NewReader(nil, s2.ReaderMaxBlockSize(snappyFrame))
	}
	d.source.Reset(message)
	defer d.source.Reset(nil)
	d.snappy.Reset(&d.source)
	defer d.snappy.Reset(nil)
	return pool.readDecompressed(d.snappy)
}

// decompressSnappy decompresses the snappy block format. A message in this format begins with its decompressed length.
func decompressSnappy(message []byte, pool *Pool) (*Body, error) {
	length, err := snappy.DecodedLen(message)
	if err != nil {
		return &Body{}, err //nolint:wrapcheck // Decompress does
	}
	if int64(length) > pool.maxBody {
		return &Body{}, ErrTooLarge
	}
	plain := pool.Take(max(length, 1))
	if plain == nil {
		return &Body{}, ErrNoRoom
	}
	plain.Bytes, err = snappy.DecodeStrict(plain.Bytes, message)
	return plain, err //nolint:wrapcheck // Decompress does
}

// decompressZstd decompresses a zstd message. It estimates the decompressed length, and retries with twice the
// capacity each time the body may have been too small. It returns ErrTooLarge if the limit for one body is
// exceeded.
func (d *Decompressor) decompressZstd(message []byte, pool *Pool) (*Body, error) {
	if len(message) < minZstd {
		return &Body{}, io.ErrUnexpectedEOF
	}
	maxCapacity := int(pool.maxBody) + zstdBlock // the library needs free capacity after the last block
	estimatedLength := zstdRatio * len(message)
	capacity := min(max(FirstBuffer, estimatedLength), maxCapacity)
	for {
		plain, err := d.decompressZstdWithin(capacity, message, pool)
		isTooSmall := errors.Is(err, errZstdCapacity)
		if !isTooSmall {
			return plain, err
		}
		if capacity == maxCapacity {
			return plain, ErrTooLarge
		}
		plain.Release()
		capacity = min(2*capacity, maxCapacity)
	}
}

// decompressZstdWithin decompresses a zstd message into a body of the given capacity. It returns errZstdCapacity if
// the capacity may be too small, and ErrTooLarge if the body exceeds its limit. The caller must release the body even
// after an error.
func (d *Decompressor) decompressZstdWithin(capacity int, message []byte, pool *Pool) (*Body, error) {
	if d.zstd == nil {
		d.zstd = newZstdDecoder()
	}
	plain := pool.Take(capacity)
	if plain == nil {
		return &Body{}, ErrNoRoom
	}
	decoded, err := d.zstd.DecodeAll(message, plain.Bytes[:0:capacity])
	if err == nil {
		plain.Bytes = decoded
		if int64(len(decoded)) > pool.maxBody {
			return plain, ErrTooLarge
		}
		return plain, nil
	}
	// The library reports a block that does not fit in the rest of the body like an invalid block.
	remainingCapacity := capacity - len(decoded)
	mayNotFit := remainingCapacity < zstdBlock
	if mayNotFit || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return plain, errZstdCapacity
	}
	return plain, err //nolint:wrapcheck // Decompress does
}

// newZstdDecoder returns a decoder that never writes beyond the capacity of its destination.
func newZstdDecoder() *zstd.Decoder {
	decoder, _ := zstd.NewReader(
		nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true),
	) // it can fail only for invalid options
	return decoder
}
