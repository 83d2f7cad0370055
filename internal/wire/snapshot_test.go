package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// walkAll returns the snapshots of a body with copies of their keys.
func walkAll(body []byte) ([]Snapshot, error) { return walkBy(body, (*SpansWalker).Next) }

// walkLong is walkAll without the fast path.
func walkLong(body []byte) ([]Snapshot, error) {
	return walkBy(body, func(w *SpansWalker, s *Snapshot) bool {
		if w.unreadCount == 0 {
			w.checkEnd()
			return false
		}
		r := msgpack.NewReaderAt(w.body, w.pos)
		expected := readSnapshot(&r, w.body, s)
		if w.pos = r.Pos(); r.Failed() {
			w.fail(expected)
			return false
		}
		w.unreadCount--
		return true
	})
}

func walkBy(body []byte, next func(*SpansWalker, *Snapshot) bool) ([]Snapshot, error) {
	walker, err := WalkSpans(body)
	if err != nil {
		return nil, err
	}
	var all []Snapshot
	for {
		var s Snapshot
		if !next(&walker, &s) {
			return all, walker.Err()
		}
		s.Key = bytes.Clone(s.Key)
		all = append(all, s)
	}
}

func sameSnapshot(a, b Snapshot) bool {
	return bytes.Equal(a.Key, b.Key) && a.Number == b.Number && a.Numbered == b.Numbered &&
		a.Duration == b.Duration && a.End == b.End && a.Flags == b.Flags && a.Weight == b.Weight
}

// checkSpans compares the walker with the reference for one body.
func checkSpans(t *testing.T, body []byte) (wellFormed bool) {
	t.Helper()
	want, ok := referenceSpans(body)
	got, err := walkAll(body)
	switch {
	case !ok && !errors.Is(err, ErrMalformed):
		t.Fatalf("%x: error %v, want ErrMalformed as the reference refuses it", body, err)
	case ok && err != nil:
		t.Fatalf("%x: %v, where the reference reads it", body, err)
	case ok && !slices.EqualFunc(got, want, sameSnapshot):
		t.Fatalf("%x:\n got %+v\nwant %+v", body, got, want)
	}
	long, longErr := walkLong(body)
	if !slices.EqualFunc(long, got, sameSnapshot) || fmt.Sprint(longErr) != fmt.Sprint(err) {
		t.Fatalf("%x:\n the long way %+v, %v\n the short one %+v, %v", body, long, longErr, got, err)
	}
	return ok
}

func TestWalker_AgreesWithLibrary(t *testing.T) {
	snapshots := comparedSnapshots
	if testing.Short() {
		snapshots = 10_000
	}
	for _, mistakes := range []bool{false, true} {
		g := newGenerator(7, mistakes)
		well, ill := 0, 0
		for n := 0; n < snapshots/2; {
			size := g.IntN(12)
			n += max(size, 1)
			if checkSpans(t, g.spans(size)) {
				well++
			} else {
				ill++
			}
		}
		if well == 0 || mistakes == (ill == 0) {
			t.Errorf("with mistakes %v the generator made %d well formed bodies and %d others", mistakes,
				well, ill)
		}
	}
}

func TestWalkSpans_RoundTrip(t *testing.T) {
	ends := []int64{0, 1, -1, -33, 1 << 40, math.MaxInt64, math.MinInt64, 1_800_000_000_000_000_000}
	durations := []uint64{
		0, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1,
		math.MaxUint64,
	}
	weights := []float64{1, 2, 0.25, 127, 128, 65536, math.MaxUint32, MaxWeight, math.SmallestNonzeroFloat64}
	numbers := []uint32{0, 127, 128, 255, 256, 8191, 65535, 65536, math.MaxUint32}
	keys := [][]byte{{}, {1}, make([]byte, 255), make([]byte, 256), make([]byte, 70_000)}
	var want []Snapshot
	frame := BeginSpans(nil)
	for i := range 4 * 9 * 5 * 10 * 8 {
		s := Snapshot{
			Duration: durations[i%len(durations)], End: ends[i%len(ends)],
			Flags: span.Flags(i) & span.KnownFlags, Weight: weights[i%len(weights)],
		}
		if i%17 == 0 {
			s.Key = keys[i/17%len(keys)]
			frame = AppendWhole(frame, s.Key, s.Duration, s.End, s.Flags, s.Weight)
		} else {
			s.Number, s.Numbered = numbers[i%len(numbers)], true
			frame = AppendNumbered(frame, s.Number, s.Duration, s.End, s.Flags, s.Weight)
		}
		want = append(want, s)
	}
	EndSpans(frame, 0, len(want))
	kind, body, err := Split(frame[HeaderLen:])
	if err != nil || kind != TypeSpans {
		t.Fatalf("split: %s, %v", kind, err)
	}
	got, err := walkAll(body)
	if err != nil || !slices.EqualFunc(got, want, sameSnapshot) {
		t.Fatalf("walked %d of %d snapshots otherwise than appended, error %v", len(got), len(want), err)
	}
}

func TestWalkSpans_Len(t *testing.T) {
	walker, err := WalkSpans([]byte{msgpack.FixArray | 2, 0x94, 1, 1, 1, 0, 0x94, 1, 1, 1, 0})
	if err != nil || walker.Len() != 2 {
		t.Fatalf("Len %d, error %v, want 2", walker.Len(), err)
	}
	var s Snapshot
	walker.Next(&s)
	if walker.Len() != 2 {
		t.Errorf("Len %d within the walk, want it to stay 2", walker.Len())
	}
}

func TestWalkSpans_ImpossibleCount(t *testing.T) {
	body := []byte{msgpack.FixArray | 2, 0x94, 1, 1, 1, 0, 0x94, 1, 1, 1}
	if walker, err := WalkSpans(body); !errors.Is(err, ErrMalformed) || walker.Len() != 0 {
		t.Errorf("Len %d, error %v, want ErrMalformed before the walk", walker.Len(), err)
	}
}

// A batch that is truncated at any position is an error, and no byte beyond its end is read.
func TestWalkSpans_TruncatedAtAnyPosition(t *testing.T) {
	for name, snapshot := range map[string][]byte{
		"short number": AppendNumbered(nil, 1, 1<<20, 1<<60, span.Error, 1),
		"uint8 number": AppendNumbered(nil, 200, 1<<20, 1<<60, span.Error, 1),
		"long number":  AppendNumbered(nil, 8000, 1<<20, 1<<60, span.Error, 1),
		"longer":       AppendNumbered(nil, 1<<20, 1<<60, 1<<60, span.Error, 0.5),
		"whole":        AppendWhole(nil, make([]byte, 20), 1<<20, 1<<60, span.Error, 1),
		"whole, long":  AppendWhole(nil, make([]byte, 300), 1<<10, 1<<60, span.Error, 2.5),
	} {
		body := append([]byte{msgpack.FixArray | 1}, snapshot...)
		if _, err := walkAll(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for cut := range len(body) {
			if _, err := walkAll(slices.Clip(body[:cut])); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s cut to %d of %d bytes: error %v, want ErrMalformed", name, cut, len(body), err)
			}
		}
	}
}

func TestFlags_UnknownAreNotAppended(t *testing.T) {
	body := AppendNumbered([]byte{msgpack.FixArray | 1}, 1, 2, 3, ^span.Flags(0), 1)
	all, err := walkAll(body)
	if err != nil || all[0].Flags != span.KnownFlags {
		t.Errorf("walked %+v, error %v, want the known flags", all, err)
	}
}

func TestWalker_StaysAtError(t *testing.T) {
	walker, err := WalkSpans([]byte{msgpack.FixArray | 2, 0x94, 1, 1, 1, 9, 0x94, 1, 1, 1, 0})
	if err != nil {
		t.Fatal(err)
	}
	var s Snapshot
	for range 3 {
		if walker.Next(&s) {
			t.Fatal("a snapshot after a malformed one")
		}
		if !errors.Is(walker.Err(), ErrMalformed) {
			t.Fatalf("error %v, want ErrMalformed", walker.Err())
		}
	}
}

func TestWalker_KeyCannotGrowIntoMessage(t *testing.T) {
	frame := BeginSpans(nil)
	frame = AppendWhole(frame, []byte("short"), 300, 1<<60, 0, 1)         // for the fast path
	frame = AppendWhole(frame, []byte("short"), 300, 1<<60, 0, 2)         // not for the fast path
	frame = AppendNumbered(frame, 1, math.MaxUint32, 1_800_000_000, 0, 1) // following bytes
	EndSpans(frame, 0, 3)
	before := bytes.Clone(frame)
	walker, err := WalkSpans(frame[HeaderLen+2:])
	if err != nil {
		t.Fatal(err)
	}
	var s Snapshot
	for walker.Next(&s) {
		if !s.Numbered {
			_ = append(s.Key, "overwrites"...)
		}
	}
	if !bytes.Equal(frame, before) {
		t.Error("appending to a walked key changed the message")
	}
}

func TestValidWeight(t *testing.T) {
	for weight, want := range map[float64]bool{
		1: true, 0.001: true, MaxWeight: true, math.SmallestNonzeroFloat64: true,
		0: false, -1: false, MaxWeight + 1: false, math.Inf(1): false, math.Inf(-1): false,
	} {
		if ValidWeight(weight) != want {
			t.Errorf("ValidWeight(%g) is not %v", weight, want)
		}
	}
	if ValidWeight(math.NaN()) {
		t.Error("NaN is a valid weight")
	}
}

// The position of the error is the start of the weight, however many bytes it has.
func TestWeight_ErrorPosition(t *testing.T) {
	for _, weight := range [][]byte{{0}, {0xff}, {0xca, 0x7f, 0xc0, 0, 0}, {0xcf, 1, 0, 0, 0, 0, 0, 0, 0}} {
		body := append([]byte{0x91, 0x95, 0xc4, 4, 0x93, 0xa0, 0xa0, 0xa0, 1, 2, 0}, weight...)
		walker, err := WalkSpans(body)
		if err != nil || walker.Next(new(Snapshot)) {
			t.Fatalf("a weight of % x is accepted: %v", weight, err)
		}
		if left, ok := UndecodedBytes(walker.Err()); !ok || left != len(weight) {
			t.Errorf("the fault is %d bytes before the end, and the weight has %d", left, len(weight))
		}
	}
}

// A numbered snapshot has the same encoding whether the buffer is large enough for the fast path or not.
func TestNumbered_FastPathMatchesSlowPath(t *testing.T) {
	values := []uint64{
		0, 1, 127, 128, 255, 256, 65535, 65536, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63,
		1<<64 - 1,
	}
	for _, number := range values {
		for _, duration := range values {
			for _, end := range values {
				for _, weight := range []float64{1, 2, 0.5} {
					add := func(dst []byte) []byte {
						return AppendNumbered(dst, uint32(number), duration, int64(end), span.Flags(duration),
							weight)
					}
					with, without := add(make([]byte, 3, 100)), add(make([]byte, 3))
					if !bytes.Equal(with, without) {
						t.Fatalf("number %d, duration %d, end %d, weight %v: %x with room, %x without",
							number, duration, int64(end), weight, with, without)
					}
				}
			}
		}
	}
}
