package otlptest

import (
	"bytes"
	"runtime"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// MemoryInUse returns the bytes of the heap and the stacks, after garbage collection.
func MemoryInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// CostlyBodies returns request bodies of about the given length. Each consists of one element that needs
// much memory per byte when it is decoded.
func CostlyBodies(length int) map[string][]byte {
	fill := func(element []byte) []byte { return bytes.Repeat(element, length/len(element)) }
	inScope := func(spans []byte) []byte { return Field(nil, 1, Field(nil, 2, spans)) }
	tag := Field(nil, 9, Attribute{"db.name", ""}.Encode())
	long := Span{Name: strings.Repeat("x", 600), Trace: 1, State: "ot=rv:ffffffffffffff"}
	named := Field(nil, 2, long.Encode())
	return map[string][]byte{
		"spans":     inScope(fill(Field(nil, 2, nil))),
		"tags":      inScope(Field(nil, 2, fill(tag))),
		"resources": fill(Field(nil, 1, nil)),
		"scopes":    Field(nil, 1, fill(Field(nil, 2, nil))),
		"names":     inScope(fill(named)),
		"service": append(Field(nil, 1, bytes.Join([][]byte{
			Field(nil, 1, Field(nil, 1, Attribute{"service.name", strings.Repeat("s", length/4)}.Encode())),
			Field(nil, 2, bytes.Repeat(Field(nil, 2, nil), spantable.MaxSpans(length/4))),
		}, nil)), Field(nil, 1, nil)...),
	}
}
