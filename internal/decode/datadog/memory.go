package datadog

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// limitsOf are the limits of a body of that length.
func limitsOf(body int) spantable.Limits { return spantable.LimitsOf(body, tagBytes) }

// tagBytes is the fewest bytes of a tag, as nearly all tracers write it.
const tagBytes = 8

// stringBytes is what a string takes that is numbered: its place, its label, its slots of a table
// half full, and of the one before.
const stringBytes = int(unsafe.Sizeof(spantable.Text{})+unsafe.Sizeof(spantable.Label(0))) + 4*4

// Bytes is the most that a decoder and its table take for bodies of that length, with so many
// bytes more for each span.
func Bytes(body, perSpan int) int {
	l := limitsOf(body)
	return l.Bytes(perSpan) + int(spantable.Grown*float64(l.Strings*stringBytes))
}
