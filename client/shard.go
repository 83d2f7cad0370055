package client

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/cpu"
)

// shard encodes the snapshots of publishers. There are several, so that publishers on different processors rarely
// contend for the same one.
type shard struct {
	mu sync.Mutex // publishers use TryLock only, and the sender uses lock

	pool *pool
	gate *gate

	buffer *buffer // buffer to append to, or nil
	filled *buffer // buffers that the current batch has filled, as a list that starts with the newest
	chain  int     // length of that list
	noRoom int     // size of the smallest batch that did not fit into buffer, or 0
	keys   keyTable
	known  encodedTable
	labels labelTable
	cutter cutter

	published atomic.Uint64
	refused   losses

	_ cpu.CacheLinePad
}

// lock is used by the sender. It polls instead of waiting for the mutex, because unlocking a mutex with a
// waiter is a system call, which the publisher would make.
func (s *shard) lock() {
	for tries := 0; !s.mu.TryLock(); tries++ {
		if tries < 16 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// publish adds the batch to the buffer, or counts it as refused. sealed reports whether there are new sealed buffers.
func (s *shard) publish(batch []Snapshot) (accepted, sealed bool) {
	r, sealed := s.encodeBatch(batch)
	if r != none {
		s.refused.add(r, len(batch))
	}
	return r == none, sealed
}

// encodeBatch encodes the whole batch and returns none, or encodes nothing and returns the reason. sealed
// reports whether there are new sealed buffers.
func (s *shard) encodeBatch(batch []Snapshot) (r reason, sealed bool) {
	// The gate is read with the lock held, so after the sender has closed the gate and sealed the shard, no more
	// snapshots are added.
	if r := s.gate.closedReason(); r != none {
		return r, false
	}
	if s.noRoom != 0 && len(batch) >= s.noRoom && s.pool.free.isEmpty() {
		return bufferFull, false // a batch of this size has not fit before
	}
	offered, first, before := len(batch), s.buffer, mark{}
	if first != nil {
		before = first.mark()
	}
	for len(batch) > 0 {
		n := s.fill(batch[:min(len(batch), frameSpans)])
		batch = batch[n:]
		if n > 0 {
			continue
		}
		if r := s.nextBuffer(); r != none {
			if r == bufferFull {
				s.noRoom = offered
			}
			return r, s.undo(first, before)
		}
	}
	// Published must be counted before the sender can see the buffers, so that it is never less than Sent.
	s.published.Add(uint64(offered))
	return none, s.sealFilled()
}

// fill appends up to frameSpans snapshots to the buffer, in its last message or a new one, and returns
// their number. If not all fit, it appends none, unless the buffer is empty: another buffer would not have
// more space, so the batch is split.
func (s *shard) fill(batch []Snapshot) (taken int) {
	b := s.buffer
	if b == nil || !b.fits(headerRoom) {
		return 0
	}
	before := b.mark()
	if b.open.count == 0 || b.open.count+len(batch) > frameSpans {
		b.open = mark{start: len(b.frames)}
		b.frames = wire.BeginSpans(b.frames)
	}
	for taken < len(batch) && s.encode(&batch[taken]) {
		taken++
	}
	if taken < len(batch) && before.spans > 0 {
		b.rewind(before)
		return 0
	}
	b.open.count += taken
	b.spans += taken
	b.finishMessage()
	return taken
}

// encode appends one snapshot to the buffer. It returns false, and appends nothing, if there is no space.
func (s *shard) encode(snapshot *Snapshot) bool {
	if !s.buffer.fits(snapshotRoom) {
		return false
	}
	if snapshot.Encoded != nil {
		return s.encodeEncoded(snapshot, snapshot.Encoded)
	}
	if number, ok := s.labels.find(&snapshot.Key); ok {
		s.buffer.appendNumbered(snapshot, uint32(number))
		return true
	}
	return s.encodeLabels(snapshot)
}

// encodeEncoded appends a snapshot with an EncodedKey.
func (s *shard) encodeEncoded(snapshot *Snapshot, key *EncodedKey) bool {
	known := &s.known[key.id%tableSlots]
	if known.id == key.id {
		s.buffer.appendNumbered(snapshot, known.number)
		return true
	}
	if !s.buffer.fits(snapshotRoom + len(key.raw)) {
		return false
	}
	if number, ok := s.appendRaw(snapshot, key.raw); ok {
		*known = encodedSlot{key.id, number}
	}
	return true
}

// encodeLabels appends a snapshot whose key is not in the label table. A key that has to be truncated is
// never added to the table.
func (s *shard) encodeLabels(snapshot *Snapshot) bool {
	key := &snapshot.Key
	bound := keyBound(key)
	if isOversized(key, bound) {
		cut := s.cutter.cut(key)
		_, _, appended := s.append(snapshot, cut, keyBound(cut))
		s.cutter = cutter{} // frees the caller's strings
		return appended
	}
	number, ok, appended := s.append(snapshot, key, bound)
	if ok {
		s.labels.add(key, number)
	}
	return appended
}

// append appends a snapshot with the given key. bound is the maximum length of the encoded key. It returns
// the number of the key in this buffer, if ok, and whether the snapshot fits.
func (s *shard) append(snapshot *Snapshot, key *Key, bound int) (number uint32, ok, appended bool) {
	b := s.buffer
	if !b.fits(snapshotRoom + bound) {
		return 0, false, false
	}
	// The key is encoded after space for the rest of the snapshot. If the snapshot contains the whole key, it is moved
	// back by a few bytes.
	ahead := len(b.frames) + snapshotRoom
	raw := wire.AppendKey(b.frames[ahead:ahead:cap(b.frames)], key)
	number, ok = s.appendRaw(snapshot, raw)
	return number, ok, true
}

// appendRaw appends a snapshot, for which there is space, with the number of its key or with the whole
// encoded key. It returns the number, if ok.
func (s *shard) appendRaw(snapshot *Snapshot, raw []byte) (number uint32, ok bool) {
	number, ok = s.number(s.buffer, raw)
	if ok {
		s.buffer.appendNumbered(snapshot, number)
	} else {
		s.buffer.appendWhole(snapshot, raw)
	}
	return number, ok
}

// number returns the number of an encoded key in this buffer. It defines a new key while there is space for
// definitions, and otherwise returns false.
func (s *shard) number(b *buffer, raw []byte) (uint32, bool) {
	slot, hash, found := s.keys.find(raw, b.definitions)
	if found {
		return uint32(slot.number), true
	}
	if b.keys == maxKeys || len(raw)+definitionRoom+headerRoom > cap(b.definitions)-len(b.definitions) {
		return 0, false
	}
	if b.keys == 0 {
		b.definitions = wire.BeginDefine(b.definitions)
	}
	number := uint32(b.keys)
	b.definitions = wire.AppendDefinition(b.definitions, number, raw)
	b.keys++
	*slot = keySlot{
		hash: hash, offset: uint16(len(b.definitions) - len(raw)), size: uint16(len(raw)),
		number: uint16(number),
	}
	return number, true
}

// nextBuffer replaces the buffer by an empty one, or returns the reason why there is none. The previous buffer is added
// to the list s.filled and not sealed, because no part of a batch may be sent before the whole batch fits.
func (s *shard) nextBuffer() (r reason) {
	if s.chain+1 == len(s.pool.buffers) {
		return tooLarge
	}
	next := s.pool.take()
	if next == nil {
		return bufferFull
	}
	if s.buffer != nil {
		s.buffer.next = s.filled
		s.filled = s.buffer
		s.chain++
	}
	s.buffer = next
	s.noRoom = 0
	clear(s.keys[:])
	clear(s.known[:])
	s.labels.reset()
	return none
}

// sealFilled seals the buffers of the list s.filled, in the order in which they were filled.
func (s *shard) sealFilled() (sealed bool) {
	var oldest *buffer
	for b := s.filled; b != nil; {
		newer := b.next
		b.next = oldest
		oldest, b = b, newer
	}
	for b := oldest; b != nil; sealed = true {
		next := b.next
		b.next = nil
		s.pool.seal(b)
		b = next
	}
	s.filled, s.chain = nil, 0
	return sealed
}

// undo removes a batch that does not fit. The batch began in the buffer first, at the position before, and may have
// continued in further buffers, which undo frees. In that case undo seals first, and returns true.
func (s *shard) undo(first *buffer, before mark) (sealed bool) {
	hasMoved := s.buffer != first
	if hasMoved {
		s.pool.give(s.buffer)
	}
	for b := s.filled; b != nil; {
		next := b.next
		if b != first {
			s.pool.give(b)
		}
		b = next
	}
	s.buffer, s.filled, s.chain = first, nil, 0
	if first == nil {
		s.labels.forget()
		return false
	}
	first.next = nil
	first.rewind(before)
	if hasMoved {
		s.seal() // its key table has been cleared, so nothing can be appended to it
	}
	return hasMoved
}

// seal seals the current buffer, if there is one.
func (s *shard) seal() {
	if s.buffer != nil {
		s.pool.seal(s.buffer)
		s.buffer, s.noRoom = nil, 0
		s.labels.forget()
	}
}
