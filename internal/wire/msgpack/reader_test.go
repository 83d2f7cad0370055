package msgpack_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
	reference "github.com/vmihailenco/msgpack/v5"
)

// isInteger reports whether lead is the lead byte of an integer.
func isInteger(lead byte) bool {
	return lead < msgpack.FixMap || lead >= msgpack.FixNegative ||
		lead >= msgpack.Uint8 && lead <= msgpack.Int64
}

// value reads the next value with a Reader, and returns it in the types that the library uses.
func value(r *msgpack.Reader, body []byte, depth int) any {
	switch lead := r.Peek(); {
	case depth == 0:
		r.Fail()
	case lead == msgpack.Nil:
		r.SkipNil()
	case msgpack.IsBool(lead):
		return r.Bool()
	case isInteger(lead):
		v, isNegative := r.Integer()
		if isNegative {
			return int64(v)
		}
		return v
	case lead == msgpack.Float32 || lead == msgpack.Float64:
		return r.Number()
	case msgpack.IsStr(lead):
		return string(r.Str().Bytes(body))
	case msgpack.IsBin(lead):
		return bytes.Clone(r.Bin().Bytes(body))
	case msgpack.IsArray(lead):
		all := []any{}
		for n := r.Array(); n > 0 && !r.Failed(); n-- {
			all = append(all, value(r, body, depth-1))
		}
		return all
	case msgpack.IsMap(lead):
		all := []any{lead}
		for n := 2 * r.Map(); n > 0 && !r.Failed(); n-- {
			all = append(all, value(r, body, depth-1))
		}
		return all
	default:
		r.Skip() // an extension, or the end
	}
	return nil
}

// theirs reads the next value with the library.
func theirs(d *reference.Decoder) (any, error) {
	lead, err := d.PeekCode()
	switch {
	case err != nil:
		return nil, err
	case isInteger(lead) && lead < msgpack.Int8:
		return d.DecodeUint64()
	case isInteger(lead):
		v, err := d.DecodeInt64()
		if v >= 0 {
			return uint64(v), err
		}
		return v, err
	case lead == msgpack.Float32 || lead == msgpack.Float64:
		return d.DecodeFloat64()
	case msgpack.IsStr(lead):
		return d.DecodeString()
	case msgpack.IsBin(lead):
		return d.DecodeBytes()
	case msgpack.IsBool(lead):
		return d.DecodeBool()
	case lead == msgpack.Nil:
		return nil, d.DecodeNil()
	case msgpack.IsArray(lead):
		n, err := d.DecodeArrayLen()
		return their(d, []any{}, n, err)
	case msgpack.IsMap(lead):
		n, err := d.DecodeMapLen()
		return their(d, []any{lead}, 2*n, err)
	}
	return nil, d.Skip()
}

func their(d *reference.Decoder, all []any, n int, err error) (any, error) {
	for ; n > 0 && err == nil; n-- {
		var v any
		v, err = theirs(d)
		all = append(all, v)
	}
	return all, err
}

// random appends a value of a random type and width.
func random(rnd *rand.Rand, b []byte, depth int) []byte {
	text := strings.Repeat("x", []int{0, 1, 31, 32, 255, 256, 1 << 16}[rnd.IntN(7)])
	number := rnd.Uint64() >> rnd.IntN(64)
	count := rnd.IntN(4)
	switch kind := rnd.IntN(18); {
	case kind == 0:
		return append(b, msgpack.Nil)
	case kind == 1:
		return append(b, msgpack.False+byte(rnd.IntN(2)))
	case kind == 2:
		return append(b, byte(number)&0x7f)
	case kind == 3:
		return append(b, msgpack.FixNegative|byte(number))
	case kind == 4:
		return append(b, msgpack.Uint8+4*byte(rnd.IntN(2)), byte(number))
	case kind == 5:
		return binary.BigEndian.AppendUint16(append(b, msgpack.Uint16+4*byte(rnd.IntN(2))), uint16(number))
	case kind == 6:
		return binary.BigEndian.AppendUint32(append(b, msgpack.Uint32+4*byte(rnd.IntN(2))), uint32(number))
	case kind == 7:
		return binary.BigEndian.AppendUint64(append(b, msgpack.Uint64+4*byte(rnd.IntN(2))), number)
	case kind == 8:
		return binary.BigEndian.AppendUint32(append(b, msgpack.Float32), math.Float32bits(float32(number)))
	case kind == 9:
		return binary.BigEndian.AppendUint64(append(b, msgpack.Float64), math.Float64bits(float64(number)/7))
	case kind < 13:
		return append(sizedLead(rnd, b, msgpack.FixStr, msgpack.Str8, len(text)), text...)
	case kind == 13:
		return append(sizedLead(rnd, b, 0, msgpack.Bin8, len(text)), text...)
	case depth == 0:
		return append(b, msgpack.Nil)
	case kind == 14:
		return append(append(b, msgpack.FixExt1+2), 7, 1, 2, 3, 4)
	case kind < 17:
		b = countLead(rnd, b, msgpack.FixArray, msgpack.Array16, count)
	default:
		b = countLead(rnd, b, msgpack.FixMap, msgpack.Map16, count)
		count *= 2
	}
	for range count {
		b = random(rnd, b, depth-1)
	}
	return b
}

// sizedLead appends a length in any encoding that is wide enough.
func sizedLead(rnd *rand.Rand, b []byte, fix, lead8 byte, n int) []byte {
	switch form := rnd.IntN(4); {
	case form == 0 && n < 32 && fix != 0:
		return append(b, fix|byte(n))
	case form <= 1 && n < 1<<8:
		return append(b, lead8, byte(n))
	case form <= 2 && n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, lead8+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, lead8+2), uint32(n))
}

// countLead appends a count in any encoding that is wide enough.
func countLead(rnd *rand.Rand, b []byte, fix, lead16 byte, n int) []byte {
	switch rnd.IntN(3) {
	case 0:
		return append(b, fix|byte(n))
	case 1:
		return binary.BigEndian.AppendUint16(append(b, lead16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, lead16+1), uint32(n))
}

// agree compares the values that a Reader and the library read from a body.
func agree(t *testing.T, body []byte) (ok bool) {
	t.Helper()
	r := msgpack.NewReader(body)
	ours := value(&r, body, msgpack.MaxDepth)
	skipping := msgpack.NewReader(body)
	skipping.Skip()
	if skipping.Failed() != r.Failed() || skipping.Pos() != r.Pos() && !r.Failed() {
		t.Fatalf("%x: read to %d (fault: %v), skipped to %d (fault: %v)", body, r.Pos(), r.Failed(),
			skipping.Pos(), skipping.Failed())
	}
	if r.Failed() {
		return false
	}
	from := bytes.NewReader(body[:r.Pos()])
	want, err := theirs(reference.NewDecoder(from))
	if err != nil || from.Len() > 0 {
		t.Fatalf("%x: the library reads %v and leaves %d bytes: %v", body, want, from.Len(), err)
	}
	if got, want := fmt.Sprintf("%T %#v", ours, ours), fmt.Sprintf("%T %#v", want, want); got != want {
		t.Fatalf("%x: read %s, the library reads %s", body, got, want)
	}
	return true
}

// The test covers every type of value in every width.
func TestReader_MatchesLibrary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		if body := random(rnd, nil, 3); !agree(t, body) {
			t.Fatalf("%x is a fault", body)
		}
	}
}

// A value that is truncated at any position is a failure, and the Reader returns zero values after it.
func TestReader_Truncated(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		body := random(rnd, nil, 2)
		for cut := 0; cut < len(body); cut += 1 + len(body)/100 {
			r := msgpack.NewReader(body[:cut])
			r.Skip()
			if !r.Failed() || r.Pos() > cut {
				t.Fatalf("%x, cut at %d, was read to %d", body, cut, r.Pos())
			}
			if r.Unread() != 0 || r.Peek() != msgpack.Unused || r.Int() != 0 || r.Str() != (msgpack.Text{}) ||
				r.Array() != 0 || r.Map() != 0 || r.Number() != 0 || r.Bool() || r.SkipNil() {
				t.Fatalf("%x, cut at %d: something was read after the fault", body, cut)
			}
		}
	}
}

// The error messages of callers depend on this position.
func TestReader_ErrorPosition(t *testing.T) {
	for name, test := range map[string]struct {
		body []byte
		read func(*msgpack.Reader)
	}{
		"too large": {[]byte{1, msgpack.Uint16, 1, 0}, func(r *msgpack.Reader) { r.Uint(255) }},
		"negative":  {[]byte{1, 0xff}, func(r *msgpack.Reader) { r.Uint(255) }},
		"beyond 63 bits": {
			[]byte{1, msgpack.Uint64, 0x80, 0, 0, 0, 0, 0, 0, 0},
			func(r *msgpack.Reader) { r.Int() },
		},
		"another kind":        {[]byte{1, 0xa0}, func(r *msgpack.Reader) { r.Bin() }},
		"a string cut short":  {[]byte{1, msgpack.Str8, 2, 'x'}, func(r *msgpack.Reader) { r.Str() }},
		"a count too large":   {[]byte{1, 0x92, 1}, func(r *msgpack.Reader) { r.Array() }},
		"pairs that can't be": {[]byte{1, msgpack.Map16, 0, 2, 1}, func(r *msgpack.Reader) { r.Map() }},
	} {
		r := msgpack.NewReader(test.body)
		r.Uint(1)
		if test.read(&r); !r.Failed() || r.Pos() != 1 {
			t.Errorf("%s: the reader is at %d", name, r.Pos())
		}
	}
}

// Values that are nested deeper than the caller allows are a failure, however short they are.
func TestReader_NestingIsBounded(t *testing.T) {
	nested := func(n int) []byte { return append(bytes.Repeat([]byte{msgpack.FixArray | 1}, n), msgpack.Nil) }
	for depth := range 10 {
		r := msgpack.NewReader(nested(depth))
		if r.SkipWithin(depth); r.Failed() {
			t.Errorf("a nesting of %d is a fault", depth)
		}
		r = msgpack.NewReader(nested(depth + 1))
		if r.SkipWithin(depth); !r.Failed() {
			t.Errorf("a nesting of %d was followed", depth+1)
		}
	}
	r := msgpack.NewReader(nested(1 << 20))
	if r.Skip(); !r.Failed() || r.Pos() > msgpack.MaxDepth+1 {
		t.Errorf("it was followed to %d", r.Pos())
	}
}

// An array or a map with more elements than the agent accepts is a failure, wherever it is read.
func TestReader_ElementsAreBounded(t *testing.T) {
	for _, test := range []struct {
		lead     byte
		perCount int // values of an element
		read     func(*msgpack.Reader) int
	}{
		{msgpack.Array16 + 1, 1, (*msgpack.Reader).Array},
		{msgpack.Map16 + 1, 2, (*msgpack.Reader).Map},
	} {
		for _, count := range []int{msgpack.MaxElements, msgpack.MaxElements + 1} {
			body := binary.BigEndian.AppendUint32([]byte{test.lead}, uint32(count))
			body = append(body, bytes.Repeat([]byte{msgpack.Nil}, count*test.perCount)...)
			isAccepted := count <= msgpack.MaxElements
			read, skipped := msgpack.NewReader(body), msgpack.NewReader(body)
			if n := test.read(&read); read.Failed() == isAccepted || isAccepted && n != count {
				t.Errorf("%x with %d elements: read as %d, failed %v", test.lead, count, n, read.Failed())
			}
			if skipped.Skip(); skipped.Failed() == isAccepted {
				t.Errorf("%x with %d elements: skipped, failed %v", test.lead, count, skipped.Failed())
			}
		}
	}
}

func TestReader_AllocatesNothing(t *testing.T) {
	body := random(rand.New(rand.NewPCG(8, 9)), []byte{msgpack.FixArray | 2, 1}, 3)
	if n := testing.AllocsPerRun(100, func() {
		r := msgpack.NewReader(body)
		r.Skip()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// No bytes make a Reader panic, or return a value that the library does not.
func FuzzReader(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		if body := random(rnd, nil, 3); len(body) < 1000 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) { agree(t, body) })
}
