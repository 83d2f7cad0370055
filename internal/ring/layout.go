package ring

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

const (
	// line is what one cache line of this processor holds.
	line = unsafe.Sizeof(cpu.CacheLinePad{})

	// apart is the distance between fields that different threads write. It is
	// two lines, because processors that fetch lines in pairs would otherwise
	// carry the neighbour along.
	apart = 2 * line
)

// aligned returns n zeroed elements whose first starts a cache line. E holds
// no pointers, so that memory allocated as bytes may carry it: the collector
// looks at neither.
func aligned[E any](n int) []E {
	var zero E
	raw := make([]byte, uintptr(n)*unsafe.Sizeof(zero)+line)
	base := unsafe.Pointer(unsafe.SliceData(raw))
	offset := -uintptr(base) & (line - 1)
	return unsafe.Slice((*E)(unsafe.Add(base, offset)), n)
}
