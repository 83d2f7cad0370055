package otlptest

import (
	"bytes"
	"runtime"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// MemoryInUse is the memory of the heap and of the stacks.
func MemoryInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// CostlyBodies are bodies of that length which are made of what costs most of ours.
func CostlyBodies(length int) map[string][]byte {
	fill := func(one []byte) []byte { return bytes.Repeat(one, length/len(one)) }
	in := func(spans []byte) []byte { return Field(nil, 1, Field(nil, 2, spans)) }
	tag := Field(nil, 9, Attribute{"db.name", ""}.Encode())
	long := Span{Name: strings.Repeat("x", 600), Trace: 1, State: "ot=rv:ffffffffffffff"}
	named := Field(nil, 2, long.Encode())
	return map[string][]byte{
		"spans":     in(fill(Field(nil, 2, nil))),
		"tags":      in(Field(nil, 2, fill(tag))),
		"resources": fill(Field(nil, 1, nil)),
		"scopes":    Field(nil, 1, fill(Field(nil, 2, nil))),
		"names":     in(fill(named)),
		"service": append(Field(nil, 1, bytes.Join([][]byte{
			Field(nil, 1, Field(nil, 1, Attribute{"service.name", strings.Repeat("s", length/4)}.Encode())),
			Field(nil, 2, bytes.Repeat(Field(nil, 2, nil), spantable.MaxSpans(length/4))),
		}, nil)), Field(nil, 1, nil)...),
	}
}
