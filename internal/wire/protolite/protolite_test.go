package protolite_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// The library reads appended fields, and Fields reads messages of the library in the same way as the library.
func TestFields_AgreeWithTheLibrary(t *testing.T) {
	field := protolite.AppendVarint(protolite.AppendBytes(nil, 1, "f"), 3, 7)
	message := protolite.AppendBytes(protolite.AppendBytes(nil, 1, "M"), 2, field)
	b := protolite.AppendBytes(protolite.AppendBytes(nil, 1, []byte("a.proto")), 4, message)
	var read descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(b, &read); err != nil || read.GetName() != "a.proto" ||
		read.MessageType[0].GetName() != "M" || read.MessageType[0].Field[0].GetNumber() != 7 {
		t.Fatalf("%v: %v", &read, err)
	}
	written, err := proto.Marshal(&read)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for one := range protolite.Messages(written, 4, 2) {
		for f := range protolite.Fields(one) {
			if n++; f.Number == 3 && f.Value != 7 || f.Number == 1 && string(f.Bytes) != "f" {
				t.Errorf("field %+v", f)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d fields", n)
	}
}

func TestFieldSize_IsThatOfTheField(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 1 << 20} {
		if got := len(protolite.AppendBytes(nil, 15, make([]byte, n))); got != protolite.FieldSize(n) {
			t.Errorf("%d bytes take %d, want %d", n, protolite.FieldSize(n), got)
		}
	}
}

// No message causes a panic, or yields bytes outside of the message.
func FuzzFields(f *testing.F) {
	f.Add(protolite.AppendDouble(protolite.AppendBytes(nil, 1, "x"), 2, 1.5))
	f.Add(protowire.AppendTag(nil, 1, protowire.StartGroupType))
	f.Fuzz(func(t *testing.T, message []byte) {
		total := 0
		for one := range protolite.Fields(message) {
			total += 1 + len(one.Bytes)
		}
		if total > len(message) {
			t.Errorf("%d bytes visited of %d", total, len(message))
		}
	})
}
