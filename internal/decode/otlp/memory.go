package otlp

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// tagBytes is half of what an attribute with a label takes in a body.
const tagBytes = 24

// maxParts bounds the resources of a body, and its scopes.
const maxParts = 1 << 15

func partsOf(body int) int { return min(maxParts, 1<<8+body/64) }

// Bytes is the most that a Request takes for a body of that length, with so many bytes more for
// each span.
func Bytes(body, perSpan int) int {
	const part = int(unsafe.Sizeof(Resource{}) + unsafe.Sizeof(Scope{}))
	table := spantable.LimitsOf(body, tagBytes).Bytes(int(unsafe.Sizeof(Place{})) + perSpan)
	const ahead = attributesAhead * int(unsafe.Sizeof(spantable.Tag{}))
	return table + int(spantable.Grown*float64(partsOf(body)*part+ahead))
}
