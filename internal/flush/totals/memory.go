package totals

import "unsafe"

const (
	// listBytes and mapBytes are what a list's element and a place in a map of texts take,
	// the map having just grown; referenceBytes is a pointer in a slice that has.
	listBytes      = 64
	mapBytes       = 96
	referenceBytes = 16
	// saidBytes is a series in what the waiting payloads say, and as much in what those
	// say that take their place.
	saidBytes     = 4 * int(unsafe.Sizeof(saying{}))
	seriesBytes   = int(unsafe.Sizeof(Series{})) + listBytes + mapBytes + referenceBytes + saidBytes
	resourceBytes = int(unsafe.Sizeof(Resource{})) + emptyMapBytes + mapBytes + referenceBytes
	emptyMapBytes = 512
	counterBytes  = 8
)

// Memory is the most that Totals of these limits take. A series may have a resource of its
// own.
func (l *Limits) Memory() int {
	each := seriesBytes + resourceBytes + (l.Buckets+l.Classic)*counterBytes
	overflows := l.Resources + 1
	return (l.Series+overflows)*each + l.Bytes + overflows*l.ResourceBytes
}
