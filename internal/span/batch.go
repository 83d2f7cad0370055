package span

// Batch is spans of one origin that were counted of a body: their snapshots, and the bytes of
// their keys as our protocol writes them, in one piece of memory.
type Batch struct {
	Keys      []byte
	Snapshots []Snapshot
}

// Snapshot is one finished span of a batch.
type Snapshot struct {
	Key, KeyEnd uint32  // of its key's bytes among the batch's
	Duration    uint64  // nanoseconds
	End         int64   // nanoseconds since 1970
	Weight      float64 // how many spans it stands for
	Flags       Flags
}

// KeyOf is the bytes of a snapshot's key.
func (b *Batch) KeyOf(s *Snapshot) []byte { return b.Keys[s.Key:s.KeyEnd:s.KeyEnd] }
