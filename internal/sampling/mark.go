package sampling

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/protolite"
)

// A resource says by an attribute whether statistics of its spans were made before. It goes
// before the header of the request, and arrives where that does not: a Collector hands on what a
// message says, and the agent's own server of gRPC reads no header.

// The numbers of the fields of a resource and of an attribute.
const (
	fieldAttributes protowire.Number = 1
	fieldKey        protowire.Number = 1
	fieldValue      protowire.Number = 2
	fieldText       protowire.Number = 1
)

// mark is the attribute as a field of a resource, that it says true.
var mark = func() []byte {
	pair := protolite.AppendBytes(nil, fieldKey, otlp.StatsComputed)
	pair = protolite.AppendBytes(pair, fieldValue, protolite.AppendBytes(nil, fieldText, "true"))
	return protolite.AppendBytes(nil, fieldAttributes, pair)
}()

// eachField visits the fields of a resource, and says of each whether it is the attribute,
// whatever that says. The decoder has found all of them to be written as they must be.
func eachField(resource []byte, visit func(field []byte, isMark bool)) {
	for len(resource) > 0 {
		number, as, size := protowire.ConsumeField(resource)
		isMark := false
		if number == fieldAttributes && as == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(resource)
			pair, _ := protowire.ConsumeBytes(resource[tag:])
			isMark = string(keyOf(pair)) == otlp.StatsComputed
		}
		visit(resource[:size], isMark)
		resource = resource[size:]
	}
}

// keyOf is the name of an attribute.
func keyOf(pair []byte) (key []byte) {
	for f := range protolite.Fields(pair) {
		if f.Number == fieldKey && f.Bytes != nil {
			key = f.Bytes
		}
	}
	return key
}

// marked is how long a resource is that says true, once. One that says so already stays as it
// is.
func marked(resource []byte) (size int, isChanged bool) {
	size = len(resource) + len(mark)
	marks, isTrue := 0, false
	eachField(resource, func(field []byte, isMark bool) {
		if isMark {
			marks++
			size -= len(field)
			isTrue = bytes.Equal(field, mark)
		}
	})
	return size, marks != 1 || !isTrue
}

// appendMarked writes a resource that says true.
func appendMarked(dst, resource []byte) []byte {
	eachField(resource, func(field []byte, isMark bool) {
		if !isMark {
			dst = append(dst, field...)
		}
	})
	return append(dst, mark...)
}
