package bodies

import "bytes"

// Packing is how a message is compressed.
type Packing uint8

const (
	Plain Packing = iota
	Gzip
	Zstd
	// Snappy is one block; in frames where it begins like them, as a Collector of before 2025 sent it
	// under the same name.
	Snappy
	SnappyFramed
)

// Packings are the names of those that are known, in the words of HTTP.
const Packings = "gzip, zstd, snappy, x-snappy-framed"

var packings = [...]string{
	Plain: "identity", Gzip: "gzip", Zstd: "zstd", Snappy: "snappy", SnappyFramed: "x-snappy-framed",
}

// PackingOf finds what a Content-Encoding stands for.
func PackingOf(name string) (p Packing, isKnown bool) {
	if name == "" { // most of the time
		return Plain, true
	}
	for i := range packings {
		if packings[i] == name {
			return Packing(i), true
		}
	}
	return Plain, false
}

// String is its name as a Content-Encoding.
func (p Packing) String() string { return packings[p] }

// Of is what a message is compressed with, where a name has two meanings.
func (p Packing) Of(message []byte) Packing {
	if p == Snappy && bytes.HasPrefix(message, snappyFrames) {
		return SnappyFramed
	}
	return p
}

// snappyFrames is how every message in frames of snappy begins, and no block does.
var snappyFrames = []byte("\xff\x06\x00\x00sNaPpY")
