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

// CostlyBodies returns request bodies that need much memory per byte when they are decoded, each for another reason.
// The keys name the reasons. No body is longer than about length bytes.
func CostlyBodies(length int) map[string][]byte {
	repeat := func(element []byte) []byte { return bytes.Repeat(element, length/len(element)) }
	requestWith := func(spans []byte) []byte { return resourceSpansField(scopeSpansField(spans)) }

	emptySpan := spanField(nil)
	longSpan := spanField(Span{Name: strings.Repeat("x", 600), Trace: 1, State: "ot=rv:ffffffffffffff"}.Encode())
	emptyAttribute := spanAttributeField(Attribute{"db.name", ""})
	longService := resourceField(Attribute{"service.name", strings.Repeat("s", length/4)})
	// The decoder accepts more spans in longer bodies: at least this many in a body that contains longService.
	manySpans := scopeSpansField(bytes.Repeat(emptySpan, spantable.MaxSpans(length/4)))
	return map[string][]byte{
		"spans":     requestWith(repeat(emptySpan)),
		"tags":      requestWith(spanField(repeat(emptyAttribute))),
		"resources": repeat(resourceSpansField(nil)),
		"scopes":    resourceSpansField(repeat(scopeSpansField(nil))),
		"names":     requestWith(repeat(longSpan)),
		"service":   resourceSpansField(append(longService, manySpans...)), // each span refers to the long service
	}
}

// The following functions return a message as the field of the message that contains it.

func resourceSpansField(content []byte) []byte { return Field(nil, 1, content) }

func resourceField(a Attribute) []byte { return Field(nil, 1, Field(nil, 1, a.Encode())) }

func scopeSpansField(content []byte) []byte { return Field(nil, 2, content) }

func spanField(content []byte) []byte { return Field(nil, 2, content) }

func spanAttributeField(a Attribute) []byte { return Field(nil, 9, a.Encode()) }
