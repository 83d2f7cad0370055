package exemplars

import "unsafe"

// Bytes is what a table takes.
func (t *Table) Bytes() (bytes int64) {
	if t == nil {
		return 0
	}
	for i := range t.cycles {
		bytes += int64(cap(t.cycles[i].kept))*int64(unsafe.Sizeof(kept{})) +
			int64(len(t.cycles[i].heads))*int64(unsafe.Sizeof(int32(0)))
	}
	return bytes + int64(cap(t.candidates.all))*int64(unsafe.Sizeof(candidate{}))
}
