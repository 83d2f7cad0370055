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

// CostlyBodies returns request bodies of about the given length, by the element that each of them repeats or
// contains. These elements need much memory per byte when they are decoded.
func CostlyBodies(length int) map[string][]byte {
	// Each function returns a message as the field of the message that contains it.
	resourceSpans := func(fields []byte) []byte { return Field(nil, 1, fields) }
	resource := func(a Attribute) []byte { return Field(nil, 1, Field(nil, 1, a.Encode())) }
	scopeSpans := func(spans []byte) []byte { return Field(nil, 2, spans) }
	span := func(fields []byte) []byte { return Field(nil, 2, fields) }
	tag := Field(nil, 9, Attribute{"db.name", ""}.Encode())

	inScope := func(spans []byte) []byte { return resourceSpans(scopeSpans(spans)) }
	fill := func(element []byte) []byte { return bytes.Repeat(element, length/len(element)) }
	longName := Span{Name: strings.Repeat("x", 600), Trace: 1, State: "ot=rv:ffffffffffffff"}
	longService := resource(Attribute{"service.name", strings.Repeat("s", length/4)})
	manySpans := scopeSpans(bytes.Repeat(span(nil), spantable.MaxSpans(length/4)))
	return map[string][]byte{
		"spans":     inScope(fill(span(nil))),
		"tags":      inScope(span(fill(tag))),
		"resources": fill(resourceSpans(nil)),
		"scopes":    resourceSpans(fill(scopeSpans(nil))),
		"names":     inScope(fill(span(longName.Encode()))),
		"service":   append(resourceSpans(append(longService, manySpans...)), resourceSpans(nil)...),
	}
}
