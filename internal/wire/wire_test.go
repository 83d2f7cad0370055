package wire

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name string
		raw  []byte
		kind Type
		body string
	}{
		{"shortest", []byte("\x92\x05\x90"), TypeSpans, "\x90"},
		{"array16 and uint8", []byte("\xdc\x00\x02\xcc\x08\x80"), TypeBye, "\x80"},
		{
			"array32 and int64", []byte("\xdd\x00\x00\x00\x02\xd3\x00\x00\x00\x00\x00\x00\x00\x01\x80rest"),
			TypeHello, "\x80rest",
		},
	} {
		kind, body, err := Split(c.raw)
		if err != nil || kind != c.kind || string(body) != c.body {
			t.Errorf("%s: %s, %q, %v; want %s, %q", c.name, kind, body, err, c.kind, c.body)
		}
	}
}

func TestSplit_Refuses(t *testing.T) {
	for _, raw := range []string{
		"", "\x92", "\x92\x05", "\x91\x05", "\x93\x05\x90\x90", "\x82\x05\x90",
		"\x92\x00\x80", "\x92\x09\x80", "\x92\xff\x80", "\x92\xcd\x01", "\x92\xc0\x80",
	} {
		if _, _, err := Split([]byte(raw)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: error %v, want ErrMalformed", raw, err)
		}
	}
}

func TestFrameLength(t *testing.T) {
	if got := FrameLength([]byte{0x01, 0x02, 0x03, 0x04, 0xff}); got != 0x01020304 {
		t.Errorf("FrameLength is %#x", got)
	}
}

// Clients append several messages to one buffer, so each function must write lengths within its own message only.
func TestFrames_SeveralInOneBuffer(t *testing.T) {
	buffer := AppendFlush(nil, &Flush{ID: 1})
	start := len(buffer)
	buffer = AppendDefinition(BeginDefine(buffer), 3, AppendKey(nil, &span.Key{Service: "shop"}))
	EndDefine(buffer, start, 1)
	start = len(buffer)
	buffer = AppendNumbered(BeginSpans(buffer), 3, 1, 2, 0, 1)
	EndSpans(buffer, start, 1)
	buffer = AppendLost(buffer, Lost{"closed": 4})
	buffer = AppendBye(buffer, &Bye{Reason: "exit"})
	for _, want := range []Type{TypeFlush, TypeDefine, TypeSpans, TypeLost, TypeBye} {
		end := HeaderLen + int(binary.BigEndian.Uint32(buffer))
		kind, _, err := meaningOf(buffer[HeaderLen:end])
		if err != nil || kind != want {
			t.Fatalf("found %s, error %v, want %s", kind, err, want)
		}
		buffer = buffer[end:]
	}
	if len(buffer) != 0 {
		t.Errorf("%d bytes are left", len(buffer))
	}
}

func TestTypeString(t *testing.T) {
	for kind, want := range map[Type]string{
		TypeHello: "hello", TypeWelcome: "welcome", TypeFeatures: "features", TypeDefine: "define",
		TypeSpans: "spans", TypeLost: "lost", TypeFlush: "flush", TypeBye: "bye", 0: "type 0", 9: "type 9",
	} {
		if kind.String() != want {
			t.Errorf("type %d is called %q, want %q", uint8(kind), kind, want)
		}
	}
}

// Left returns the position of every decoding error, and false for other errors.
func TestLeft_PositionOfError(t *testing.T) {
	malformed := 0
	for _, v := range loadVectors(t) {
		frame := v.bytesOf(t)
		_, _, err := meaningOf(frame[HeaderLen:])
		left, ok := UndecodedBytes(err)
		if ok != v.Malformed || left < 0 || left > len(frame)-HeaderLen {
			t.Errorf("%s: %d bytes are left, known %v", v.Name, left, ok)
		}
		if ok {
			malformed++
		}
	}
	_, err := WalkSpans([]byte{0x91, 0x94, 0xc0, 1, 2, 3})
	if left, ok := UndecodedBytes(err); err != nil || ok || left != 0 {
		t.Errorf("what is not malformed yet: %d, %v, %v", left, ok, err)
	}
	walker, _ := WalkSpans([]byte{0x91, 0x94, 0xc0, 1, 2, 3})
	walker.Next(new(Snapshot))
	if left, _ := UndecodedBytes(walker.Err()); left != 4 || malformed == 0 {
		t.Errorf("%d bytes are left, want the four from the nil on; %d vectors are malformed", left,
			malformed)
	}
}
