package msgpack_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// TestCommonForms_MatchReader reads random values and parts of them. If one of the functions reads a value, Reader
// must read the same value, up to the same position.
func TestCommonForms_MatchReader(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 7))
	met := [4]int{}
	for range 3_000 {
		value := random(rnd, nil, 1)
		cut := rnd.IntN(len(value) + 1)
		for _, body := range [][]byte{
			value, value[:cut],
			append(bytes.Clone(value), make([]byte, msgpack.Lookahead)...),
		} {
			if text, next := msgpack.CommonStr(body, 0); next != 0 {
				r := msgpack.NewReader(body)
				if r.Str() != text || r.Failed() || r.Pos() != next {
					t.Fatalf("%x is read as the string %v, to %d", body, text, next)
				}
				met[0]++
			}
			if v, next := msgpack.CommonUint(body, 0); next != 0 {
				r := msgpack.NewReader(body)
				if r.Uint(math.MaxUint64) != v || r.Failed() || r.Pos() != next {
					t.Fatalf("%x is read as %d, to %d", body, v, next)
				}
				met[1]++
			}
			if bits, next := msgpack.CommonNumber(body, 0); next != 0 {
				r := msgpack.NewReader(body)
				if math.Float64bits(r.Number()) != bits || r.Failed() || r.Pos() != next {
					t.Fatalf("%x is read as %v, to %d", body, math.Float64frombits(bits), next)
				}
				met[2]++
			}
			if v, next := msgpack.CommonInt(body, 0); next != 0 {
				r := msgpack.NewReader(body)
				if got, isNegative := r.Integer(); got != v || isNegative || r.Failed() || r.Pos() != next {
					t.Fatalf("%x is read as %d, to %d", body, v, next)
				}
				met[3]++
			}
		}
	}
	for i, n := range met {
		if n < 100 {
			t.Errorf("only %d values had common form %d", n, i)
		}
	}
}
