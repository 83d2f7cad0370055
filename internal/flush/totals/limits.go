package totals

import (
	"time"
	"unsafe"
)

// Limits is what Totals may keep.
type Limits struct {
	Series  int           // at a time
	Bytes   int           // of encoded resources and attributes
	Idle    time.Duration // how long a series lasts that is not counted any more
	Buckets int           // of a histogram

	// What comes on top: a series for each resource of one cycle, for what finds no room.
	Resources     int // that a cycle can have
	ResourceBytes int // the longest, encoded, and the overflow attributes
}

const (
	// listBytes and mapBytes are what a list's element and a place in a map of texts take,
	// the map having just grown; referenceBytes is a pointer in a slice that has.
	listBytes      = 64
	mapBytes       = 96
	referenceBytes = 16
	seriesBytes    = int(unsafe.Sizeof(Series{})) + listBytes + mapBytes + referenceBytes
	resourceBytes  = int(unsafe.Sizeof(Resource{})) + emptyMapBytes + mapBytes + referenceBytes
	emptyMapBytes  = 512
	counterBytes   = 8
)

// Memory is the most that Totals of these limits take. A series may have a resource of its
// own.
func (l *Limits) Memory() int {
	each := seriesBytes + resourceBytes + l.Buckets*counterBytes
	return (l.Series+l.Resources)*each + l.Bytes + l.Resources*l.ResourceBytes
}
