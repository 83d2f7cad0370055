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

// CompressionOf parses a Content-Encoding, which is case-insensitive.
func CompressionOf(name string) (c Compression, isKnown bool) {
	if name == "" {
		return Plain, true
	}
	for i := range compressionNames {
		if strings.EqualFold(compressionNames[i], name) {
			return Compression(i), true
		}
	}
	return Plain, false
}

// String returns the name as a Content-Encoding.
func (c Compression) String() string { return compressionNames[c] }

// Detect returns the actual compression of a message. It differs from c only if c is Snappy and the message is in the
// framing format.
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

// Decompress decompresses a message into a new body, within the limits of the pool. The caller must release the body,
// even after an error.
func (d *Decompressor) Decompress(message []byte, c Compression, pool *Pool) (plain *Body, err error) {
	d.source.Reset(message)
	defer d.source.Reset(nil)
	c = c.Detect(message)
	switch c {
	case Gzip:
		if plain, err = (&Body{}), d.gzip.Reset(&d.source); err == nil {
			plain, err = pool.Read(&d.gzip, -1, nil)
		}
	case Zstd:
		plain, err = d.decompressZstd(message, pool)
	case Snappy:
		plain, err = decompressSnappy(message, pool)
	case SnappyFramed:
		plain, err = d.decompressFrames(message, pool)
	default:
		panic("BUG: a message that is not compressed is decompressed")
	}
	if err != nil && !errors.Is(err, ErrNoRoom) {
		err = fmt.Errorf("%w: it is not valid %s: %w", errCompressed, c, err)
	}
	return plain, err
}

// decompressFrames decompresses the snappy framing format. It refuses s2 frames, which the library supports as well.
func (d *Decompressor) decompressFrames(message []byte, pool *Pool) (*Body, error) {
	if !bytes.HasPrefix(message, snappyMagic) {
		return &Body{}, snappy.ErrCorrupt
	}
	if d.snappy == nil {
		d.snappy = s2.NewReader(nil, s2.ReaderMaxBlockSize(snappyFrame))
	}
	d.snappy.Reset(&d.source)
	defer d.snappy.Reset(nil)
	return pool.Read(d.snappy, -1, nil)
}

// decompressSnappy decompresses the snappy block format, which begins with the decompressed length.
func decompressSnappy(message []byte, pool *Pool) (*Body, error) {
	length, err := snappy.DecodedLen(message)
	switch {
	case err != nil:
		return &Body{}, err //nolint:wrapcheck // Decompress does
	case int64(length) > pool.maxBody:
		return &Body{}, ErrTooLarge
	}
	plain := pool.Take(max(length, 1))
	if plain == nil {
		return &Body{}, ErrNoRoom
	}
	plain.Bytes, err = snappy.DecodeStrict(plain.Bytes, message)
	return plain, err //nolint:wrapcheck // Decompress does
}

// decompressZstd decompresses zstd into contiguous memory. If the capacity may have been too small, it doubles the
// capacity and restarts. The library can't tell a block that does not fit from an invalid block.
func (d *Decompressor) decompressZstd(message []byte, pool *Pool) (*Body, error) {
	if d.zstd == nil {
		d.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true)) // the options are valid
	}
	if len(message) < minZstd {
		return &Body{}, io.ErrUnexpectedEOF
	}
	maxCapacity := int(pool.maxBody) + zstdBlock
	for capacity := max(FirstBuffer, zstdRatio*len(message)); ; capacity *= 2 {
		capacity = min(capacity, maxCapacity)
		plain := pool.Take(capacity)
		if plain == nil {
			return &Body{}, ErrNoRoom
		}
		decoded, err := d.zstd.DecodeAll(message, plain.Bytes[:0:capacity])
		isShort := err != nil &&
			(errors.Is(err, zstd.ErrDecoderSizeExceeded) || capacity-len(decoded) < zstdBlock)
		switch {
		case isShort && capacity < maxCapacity:
			plain.Release()
			continue
		case isShort, int64(len(decoded)) > pool.maxBody:
			return plain, ErrTooLarge
		case err == nil:
			plain.Bytes = decoded
		}
		return plain, err //nolint:wrapcheck // Decompress does
	}
}
