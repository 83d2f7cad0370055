package wire

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// generator generates messages as other encoders could: numbers and lengths of any width. Some contain mistakes.
type generator struct {
	*rand.Rand
	mistakes bool
}

func newGenerator(seed uint64, mistakes bool) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1)), mistakes: mistakes}
}

func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

// number returns a number of a random magnitude.
func (g *generator) number() uint64 { return g.Uint64() >> g.IntN(64) }

// integer appends v in a random encoding that is wide enough.
func (g *generator) integer(dst []byte, v int64) []byte {
	for {
		lead := byte(msgpack.Uint8 + g.IntN(8))
		width := 1 << (lead & 3)
		bits := uint(8 * width)
		signed := lead >= msgpack.Int8
		fits := signed && v == v<<(64-bits)>>(64-bits) || !signed && v >= 0 && (width == 8 || v < 1<<bits)
		if fits && g.oneIn(3) {
			encoded := binary.BigEndian.AppendUint64(nil, uint64(v))
			return append(append(dst, lead), encoded[8-width:]...)
		}
		if g.oneIn(3) {
			return appendInt(dst, v)
		}
	}
}

// header appends a length or a count in a random encoding that is wide enough. base is the lead byte of the shortest one.
func (g *generator) header(dst []byte, base byte, n int) []byte {
	switch {
	case base != msgpack.Array16 && n < 256 && g.oneIn(2):
		return append(dst, base, byte(n))
	case g.oneIn(2):
		if base != msgpack.Array16 {
			base++
		}
		return binary.BigEndian.AppendUint16(append(dst, base), uint16(n))
	}
	if base != msgpack.Array16 {
		base++
	}
	return binary.BigEndian.AppendUint32(append(dst, base+1), uint32(n))
}

func (g *generator) array(dst []byte, n int) []byte {
	if n < 16 && !g.oneIn(4) {
		return append(dst, msgpack.FixArray|byte(n))
	}
	return g.header(dst, msgpack.Array16, n)
}

func (g *generator) str(dst []byte, s string) []byte {
	if s == "" && g.oneIn(2) {
		return append(dst, msgpack.Nil)
	}
	if len(s) < 32 && !g.oneIn(4) {
		return append(append(dst, msgpack.FixStr|byte(len(s))), s...)
	}
	return append(g.header(dst, msgpack.Str8, len(s)), s...)
}

func (g *generator) text() string {
	switch g.IntN(8) {
	case 0, 1, 2:
		return ""
	case 3:
		return strings.Repeat("x", g.IntN(600))
	}
	return "some text that is longer than a fixstr holds"[:g.IntN(45)]
}

func (g *generator) tags() []string {
	if g.oneIn(2) {
		return nil
	}
	tags := make([]string, 1+g.IntN(20))
	for i := range tags {
		tags[i] = g.text()
	}
	return tags
}

func (g *generator) key() span.Key {
	return span.Key{
		Service: g.text(), Operation: g.text(), Resource: g.text(), Type: g.text(), Kind: g.text(),
		TraceRoot:  span.TraceRoot(g.IntN(3)),
		HTTPStatus: uint32(g.number()) * uint32(g.IntN(2)),
		PeerTags:   g.tags(),
		HTTPMethod: g.text(), HTTPEndpoint: g.text(), GRPCStatus: g.text(), ServiceSource: g.text(),
		Synthetics: g.oneIn(2), AdditionalTags: g.tags(),
	}
}

// rawKey returns the key in a random encoding.
func (g *generator) rawKey(k *span.Key) []byte {
	least := countElements(k)
	n := least + g.IntN(maxKeyElements-least+1)
	dst := g.array(nil, n)
	boolean := func(v bool) []byte {
		if v {
			return []byte{msgpack.True}
		}
		return []byte{msgpack.False}
	}
	for _, s := range []string{k.Service, k.Operation, k.Resource, k.Type, k.Kind}[:min(n, 5)] {
		dst = g.str(dst, s)
	}
	rest := []func(){
		func() { dst = appendTraceRoot(dst, k.TraceRoot) },
		func() { dst = g.integer(dst, int64(k.HTTPStatus)) },
		func() { dst = g.tagList(dst, k.PeerTags) },
		func() { dst = g.str(dst, k.HTTPMethod) },
		func() { dst = g.str(dst, k.HTTPEndpoint) },
		func() { dst = g.str(dst, k.GRPCStatus) },
		func() { dst = g.str(dst, k.ServiceSource) },
		func() { dst = append(dst, boolean(k.Synthetics)...) },
		func() { dst = g.tagList(dst, k.AdditionalTags) },
	}
	for _, label := range rest[:max(n-5, 0)] {
		label()
	}
	return g.spoil(dst)
}

func (g *generator) tagList(dst []byte, tags []string) []byte {
	dst = g.array(dst, len(tags))
	for _, tag := range tags {
		dst = g.str(dst, tag)
	}
	return dst
}

// spans returns the body of a spans message with n snapshots.
func (g *generator) spans(n int) []byte {
	dst := g.array(nil, n)
	for range n {
		weighted := g.oneIn(3)
		fields := 4
		if weighted {
			fields = 5
		}
		dst = g.array(dst, fields)
		if g.oneIn(2) {
			dst = g.integer(dst, int64(uint32(g.number())))
		} else {
			key := make([]byte, g.IntN(300))
			dst = append(g.header(dst, msgpack.Bin8, len(key)), key...)
		}
		dst = g.integer(dst, int64(g.number()))
		dst = g.integer(dst, int64(g.number()>>1)*int64(1-2*g.IntN(2)))
		dst = g.integer(dst, int64(g.IntN(4)))
		if weighted {
			dst = g.weight(dst)
		}
	}
	return g.spoil(dst)
}

func (g *generator) weight(dst []byte) []byte {
	switch g.IntN(3) {
	case 0:
		return binary.BigEndian.AppendUint32(append(dst, msgpack.Float32),
			math.Float32bits(1+g.Float32()*100))
	case 1:
		return binary.BigEndian.AppendUint64(append(dst, msgpack.Float64),
			math.Float64bits(1+g.Float64()*1e9))
	}
	return g.integer(dst, 1+int64(uint32(g.number()>>1)))
}

// spoil changes, truncates or extends the message, if the generator makes mistakes.
func (g *generator) spoil(b []byte) []byte {
	if !g.mistakes || len(b) == 0 {
		return b
	}
	switch g.IntN(4) {
	case 0:
		b[g.IntN(len(b))] = byte(g.IntN(256))
	case 1:
		b = b[:g.IntN(len(b))]
	case 2:
		b = append(b, byte(g.IntN(256)))
	}
	return b
}
