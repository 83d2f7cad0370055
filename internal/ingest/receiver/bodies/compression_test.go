package bodies_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
)

const maxBody = 1 << 20

var all = []bodies.Compression{bodies.Gzip, bodies.Zstd, bodies.Snappy, bodies.SnappyFramed}

// pack compresses a message like SDKs and Collectors. If isAtOnce is set, zstd compresses the message in one call, and
// its header contains the decompressed length.
func pack(t testing.TB, with bodies.Compression, message []byte, isAtOnce bool) []byte {
	t.Helper()
	var b bytes.Buffer
	write := func(w interface {
		Write([]byte) (int, error)
		Close() error
	}, err error,
	) []byte {
		if err == nil {
			_, err = w.Write(message)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	switch with {
	case bodies.Gzip:
		return write(gzip.NewWriter(&b), nil)
	case bodies.Zstd:
		w, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		if isAtOnce && err == nil {
			return w.EncodeAll(message, nil)
		}
		return write(w, err)
	case bodies.Snappy:
		return snappy.Encode(nil, message)
	}
	return write(snappy.NewBufferedWriter(&b), nil)
}

// random returns a partly compressible message.
func random(r *rand.Rand, length int) []byte {
	message := make([]byte, length)
	letters := 1 << r.IntN(9)
	for i := range message {
		if message[i] = byte(r.IntN(letters)); i > 100 && r.IntN(4) > 0 {
			message[i] = message[i-1-r.IntN(100)]
		}
	}
	return message
}

// TestDecompress_AllCompressions decompresses messages of all compressions with one Decompressor.
func TestDecompress_AllCompressions(t *testing.T) {
	pool := bodies.NewPool(maxBody, 4*maxBody)
	var inflater bodies.Decompressor
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		length := []int{0, 1, 100, bodies.FirstBuffer, maxBody}[round%5]
		if round >= 5 {
			length = r.IntN(1 << r.IntN(21))
		}
		message := random(r, length)
		for _, with := range all {
			packed := pack(t, with, message, round%2 == 0)
			if length == 0 && with != bodies.Gzip && len(packed) < 9 { // some libraries write no bytes for an empty message
				continue
			}
			plain, err := inflater.Decompress(packed, with, &pool)
			if err != nil || !bytes.Equal(plain.Bytes, message) {
				t.Errorf("round %d: %d bytes in %s are inflated to %d: %v", round, length, with,
					len(plain.Bytes), err)
			}
			plain.Release()
			if with == bodies.SnappyFramed { // older Collectors use the name snappy for frames
				plain, err = inflater.Decompress(packed, bodies.Snappy, &pool)
				if err != nil || !bytes.Equal(plain.Bytes, message) {
					t.Errorf("round %d: frames under the name of a block: %v", round, err)
				}
				plain.Release()
			}
		}
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes are held", pool.Used())
	}
}

// TestDecompress_Truncated truncates messages at every byte. A snappy stream can end after every frame.
func TestDecompress_Truncated(t *testing.T) {
	pool := bodies.NewPool(maxBody, 4*maxBody)
	var inflater bodies.Decompressor
	message := random(rand.New(rand.NewPCG(3, 4)), 70_000) // fits into two frames
	for _, with := range all {
		for _, isAtOnce := range []bool{true, false} {
			packed, accepted := pack(t, with, message, isAtOnce), 0
			for at := range packed {
				if at > 60 && at < len(packed)-60 && at%499 != 0 {
					continue
				}
				plain, err := inflater.Decompress(packed[:at], with, &pool)
				switch {
				case err == nil && with == bodies.SnappyFramed && bytes.HasPrefix(message, plain.Bytes):
					accepted++
				case err == nil:
					t.Errorf("%s is read that is cut at %d of %d", with, at, len(packed))
				case errors.Is(err, bodies.ErrNoRoom):
					t.Errorf("%s cut at %d: %v", with, at, err)
				case !strings.Contains(err.Error(), with.String()) && with != bodies.Snappy:
					t.Errorf("%s cut at %d says %q", with, at, err)
				}
				plain.Release()
			}
			if accepted > 2 { // a stream truncated after its header, and after its first frame
				t.Errorf("%d truncated frames are accepted", accepted)
			}
		}
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes are held", pool.Used())
	}
}

// TestDecompress_DamagedIsNotTooLarge changes one bit of messages with the maximum length of a body. The error is not
// ErrTooLarge.
func TestDecompress_DamagedIsNotTooLarge(t *testing.T) {
	pool := bodies.NewPool(maxBody, 4*maxBody)
	var inflater bodies.Decompressor
	r := rand.New(rand.NewPCG(9, 10))
	message := random(r, maxBody)
	// the block format has no checksum
	for _, with := range []bodies.Compression{bodies.Gzip, bodies.Zstd, bodies.SnappyFramed} {
		for _, isAtOnce := range []bool{true, false} {
			packed := pack(t, with, message, isAtOnce)
			for range 8 {
				at := 20 + r.IntN(len(packed)-20)
				packed[at] ^= 4
				plain, err := inflater.Decompress(packed, with, &pool)
				isLonger := errors.Is(err, bodies.ErrTooLarge) && with == bodies.Zstd && isAtOnce
				if (err == nil) == !bytes.Equal(plain.Bytes, message) && err == nil || isLonger {
					t.Errorf("%s with a bit of byte %d changed: %v", with, at, err)
				}
				packed[at] ^= 4
				plain.Release()
			}
		}
	}
}

// TestMemoryLimit_DecompressionBomb checks, for all compressions, that a message that is too large after decompression
// returns ErrTooLarge, and that its memory is limited by the maximum body, except for garbage in proportion to the
// message.
func TestMemoryLimit_DecompressionBomb(t *testing.T) {
	const most = 512 << 10
	noise := random(rand.New(rand.NewPCG(5, 6)), 3*most)
	for name, message := range map[string][]byte{
		"zeros": make([]byte, 32*most), "noise": noise,
		"a little more": noise[:most+2],
	} {
		for _, with := range all {
			for _, isAtOnce := range []bool{true, false} {
				packed := pack(t, with, message, isAtOnce)
				pool := bodies.NewPool(most, 2*most)
				var inflater bodies.Decompressor
				took := allocated(func() {
					plain, err := inflater.Decompress(packed, with, &pool)
					if !errors.Is(err, bodies.ErrTooLarge) || pool.Used() > most+most/3 {
						t.Errorf("%s in %s: %v, with %d bytes of the pool", name, with, err, pool.Used())
					}
					plain.Release()
				})
				if bound := uint64(bodies.DecompressorBytes + 6*most); took > bound || pool.Used() != 0 {
					t.Errorf("%s in %s took %d bytes, more than %d; %d are held", name, with, took, bound,
						pool.Used())
				}
			}
		}
	}
}

// TestDecompressAlloc: a warm decompressor allocates little per message.
func TestDecompressAlloc(t *testing.T) {
	pool := bodies.NewPool(bodies.FirstBuffer, 4*bodies.FirstBuffer)
	message := random(rand.New(rand.NewPCG(7, 8)), bodies.FirstBuffer/2)
	var inflater bodies.Decompressor
	for _, with := range all {
		packed := pack(t, with, message, false)
		if n := testing.AllocsPerRun(100, func() {
			plain, _ := inflater.Decompress(packed, with, &pool)
			plain.Release()
		}); n > 8 {
			t.Errorf("%s: %v allocations a message", with, n)
		}
	}
}

// allocated returns the bytes that f allocates.
func allocated(by func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	by()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hostile has messages whose headers announce more than they contain.
var hostile = []struct {
	with    bodies.Compression
	message string
}{
	// window of 3.75 TiB
	{bodies.Zstd, "\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00"},
	// window of 9 MiB
	{bodies.Zstd, "\x28\xb5\x2f\xfd\x00\x69\x01\x00\x00"},
	// length of more bytes than any memory
	{bodies.Zstd, "\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x00\x00"},
	// dictionary required
	{bodies.Zstd, "\x28\xb5\x2f\xfd\x61\x07\x10\x00\x01\x00\x00"},
	// reserved block type
	{bodies.Zstd, "\x28\xb5\x2f\xfd\x20\x05\xff\xff\xff"},
	// skippable frame of 4 GiB
	{bodies.Zstd, "\x50\x2a\x4d\x18\xff\xff\xff\xff\x00"},
	{bodies.Snappy, "\xff\xff\xff\xff\x0f\x00"}, // length of 4 GiB
	// length of a maximum body, with one byte
	{bodies.Snappy, "\x80\x80\x40\x00"},
	// copy from before the beginning
	{bodies.Snappy, "\x08\x00a\x01\x00"},
	// empty message
	{bodies.Snappy, ""},
	// message of another format
	{bodies.SnappyFramed, "\xff\x06\x00\x00S2sTwO"},
	// frame of 16 MiB
	{bodies.SnappyFramed, "\xff\x06\x00\x00sNaPpY\x00\xff\xff\xff\x00\x00\x00\x00"},
	// frame of 16 MiB after decompression
	{bodies.SnappyFramed, "\xff\x06\x00\x00sNaPpY\x00\x0a\x00\x00\x00\x00\x00\x00\xff\xff\xff\x07"},
	// unskippable chunk of an unknown type
	{bodies.SnappyFramed, "\xff\x06\x00\x00sNaPpY\x02\x00\x00\x00"},
}

// TestDecompress_HeaderReservesNoMemory checks that memory is reserved in proportion to the received bytes.
func TestDecompress_HeaderReservesNoMemory(t *testing.T) {
	for _, h := range hostile {
		pool := bodies.NewPool(maxBody, 2*maxBody)
		var inflater bodies.Decompressor
		took := allocated(func() {
			plain, err := inflater.Decompress([]byte(h.message), h.with, &pool)
			if err == nil {
				t.Errorf("%s of %x is read", h.with, h.message)
			}
			plain.Release()
		})
		if most := uint64(bodies.DecompressorBytes + 4*maxBody); took > most || pool.Used() != 0 {
			t.Errorf("%s of %x took %d bytes, and %d are held", h.with, h.message, took, pool.Used())
		}
	}
}

// FuzzInflate checks that the output of every message is limited and that its memory is released.
func FuzzInflate(f *testing.F) {
	for _, with := range all {
		f.Add(byte(with), pack(f, with, []byte("name name name name"), false))
		f.Add(byte(with), pack(f, with, make([]byte, 3*bodies.FirstBuffer), true))
	}
	for _, h := range hostile {
		f.Add(byte(h.with), []byte(h.message))
	}
	pool := bodies.NewPool(bodies.FirstBuffer, 4*bodies.FirstBuffer)
	var inflater bodies.Decompressor
	f.Fuzz(func(t *testing.T, with byte, message []byte) {
		plain, err := inflater.Decompress(message, all[int(with)%len(all)], &pool)
		if len(plain.Bytes) > bodies.FirstBuffer && err == nil {
			t.Errorf("%d bytes", len(plain.Bytes))
		}
		if errors.Is(err, bodies.ErrNoRoom) && !errors.Is(err, bodies.ErrTooLarge) {
			t.Error(err)
		}
		if plain.Release(); pool.Used() != 0 {
			t.Errorf("%d bytes are held", pool.Used())
		}
	})
}
