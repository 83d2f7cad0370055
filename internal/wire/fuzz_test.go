package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// seed adds the result of pick for the message of each test vector to the corpus.
func seed(f *testing.F, add func(kind Type, message, body []byte)) {
	for _, v := range loadVectors(f) {
		message := v.bytesOf(f)[HeaderLen:]
		kind, body, _ := Split(message)
		add(kind, message, body)
	}
}

// within runs read on a copy of b that is followed by other bytes, as in a connection's buffer, and checks that they
// do not affect the result.
func within[R any](t *testing.T, b []byte, read func(b []byte) (R, error)) (R, error) {
	t.Helper()
	want, wantErr := read(bytes.Clone(b))
	buffer := append(bytes.Clone(b), bytes.Repeat([]byte{0xc4, 0x01}, 64)...)
	got, err := read(buffer[:len(b)])
	if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%x reads as %+v, %v, and before other bytes as %+v, %v", b, want, wantErr, got, err)
	}
	if err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatalf("%x: error %v does not wrap ErrMalformed", b, err)
	}
	return want, wantErr
}

func FuzzSplit(f *testing.F) {
	seed(f, func(_ Type, message, _ []byte) { f.Add(message) })
	f.Fuzz(func(t *testing.T, message []byte) {
		body, err := within(t, message, func(b []byte) ([]byte, error) {
			kind, body, err := Split(b)
			return append([]byte{byte(kind)}, body...), err
		})
		if err == nil && (!Type(body[0]).isKnown() || len(body) < 2 || !bytes.HasSuffix(message, body[1:])) {
			t.Errorf("%x has type and body %x", message, body)
		}
	})
}

func FuzzDecodeKey(f *testing.F) {
	seed(f, func(kind Type, _, body []byte) {
		if kind != TypeSpans {
			return
		}
		all, _ := walkAll(body)
		for _, s := range all {
			f.Add(s.Key)
		}
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = within(t, raw, decodeKey)
		checkKey(t, raw)
	})
}

func FuzzWalkSpans(f *testing.F) {
	seed(f, func(kind Type, _, body []byte) {
		if kind == TypeSpans {
			f.Add(body)
		}
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := within(t, body, walkAll)
		checkSpans(t, body)
		if err != nil {
			return
		}
		frame := BeginSpans(nil)
		for _, s := range all {
			if s.Numbered {
				frame = AppendNumbered(frame, s.Number, s.Duration, s.End, s.Flags, s.Weight)
			} else {
				frame = AppendWhole(frame, s.Key, s.Duration, s.End, s.Flags, s.Weight)
			}
		}
		EndSpans(frame, 0, len(all))
		again, err := walkAll(bodyOf(t, frame))
		if err != nil || !reflect.DeepEqual(again, all) {
			t.Fatalf("%x appended again reads as %+v, error %v, want %+v", body, again, err, all)
		}
	})
}

// definition is one definition of a define message.
type definition struct {
	number uint32
	key    string
}

func walkDefinitions(body []byte) ([]definition, error) {
	walker, err := WalkDefine(body)
	if err != nil {
		return nil, err
	}
	var all []definition
	for number, key, ok := walker.Next(); ok; number, key, ok = walker.Next() {
		all = append(all, definition{number, string(key)})
	}
	return all, walker.Err()
}

func FuzzWalkDefine(f *testing.F) {
	seed(f, func(kind Type, _, body []byte) {
		if kind == TypeDefine {
			f.Add(body)
		}
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := within(t, body, walkDefinitions)
		if err != nil {
			return
		}
		frame := BeginDefine(nil)
		for _, d := range all {
			frame = AppendDefinition(frame, d.number, []byte(d.key))
		}
		EndDefine(frame, 0, len(all))
		again, err := walkDefinitions(bodyOf(t, frame))
		if err != nil || !reflect.DeepEqual(again, all) {
			t.Fatalf("%x appended again reads as %+v, error %v, want %+v", body, again, err, all)
		}
	})
}

func FuzzColdMessages(f *testing.F) {
	cold := []Type{TypeHello, TypeWelcome, TypeFeatures, TypeLost, TypeFlush, TypeBye}
	seed(f, func(kind Type, _, body []byte) {
		if kind.isKnown() && kind != TypeSpans && kind != TypeDefine {
			f.Add(byte(kind), body)
		}
	})
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		kind := cold[int(which)%len(cold)]
		if which <= byte(TypeBye) && Type(which).isKnown() && which != byte(TypeSpans) &&
			which != byte(TypeDefine) {
			kind = Type(which)
		}
		checkValid(t, body)
		meaning, err := within(t, body, func(b []byte) (obj, error) { return coldMeaning(kind, b) })
		if err != nil {
			return
		}
		message := append([]byte{msgpack.FixArray | 2, byte(kind)}, body...)
		frame, err := reencode(nil, message)
		if err != nil {
			t.Fatalf("%s %x: encode again: %v", kind, body, err)
		}
		again, err := coldMeaning(kind, bodyOf(t, frame))
		if err != nil || !reflect.DeepEqual(again, meaning) {
			t.Fatalf("%s %x encoded again means %+v, error %v, want %+v", kind, body, again, err, meaning)
		}
	})
}
