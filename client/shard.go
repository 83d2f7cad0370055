package client

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/cpu"
)

// shard is a buffer that publishers encode into. There are several, so that publishers on different
// processors rarely contend.
type shard struct {
	mu sync.Mutex // publishers use TryLock only; see lock

	pool *pool
	gate *gate

	buffer *buffer // being filled; nil if there is none
	filled *buffer // chain of buffers that the current batch has filled before it
	chain  int     // length of the chain
	noRoom int     // size of the smallest batch that did not fit in buffer, or 0
	keys   keyTable
	known  encodedTable
	labels labelTable
	cutter cutter

	published atomic.Uint64
	refused   losses

	_ cpu.CacheLinePad
}

// lock locks the shard for the sender. It does not wait for the mutex, because a publisher that
// unlocks a mutex with a waiter makes a system call.
func (s *shard) lock() {
	for tries := 0; !s.mu.TryLock(); tries++ {
		if tries < 16 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// publish encodes the batch, or counts it as refused.
func (s *shard) publish(batch []Snapshot) (accepted, sealed bool) {
	why, sealed, accepted := s.put(batch)
	if !accepted {
		s.refused.add(why, len(batch))
	}
	return accepted, sealed
}

// put encodes the complete batch, or nothing of it. If it returns sealed, the sender has a new
// buffer.
func (s *shard) put(batch []Snapshot) (why reason, sealed, accepted bool) {
	// Read the gate under the lock: after the sender has closed the gate and then sealed the shard, nothing
	// is added any more.
	if why := s.gate.shut(); why != none {
		return why, false, false
	}
	if s.noRoom != 0 && len(batch) >= s.noRoom && s.pool.free.isEmpty() {
		return bufferFull, false, false // a batch of this size did not fit before
	}
	offered, first, before := len(batch), s.buffer, mark{}
	if first != nil {
		before = first.mark()
	}
	for len(batch) > 0 {
		n := s.fill(batch[:min(len(batch), frameSpans)])
		batch = batch[n:]
		if n == 0 {
			if why := s.advance(); why != none {
				if why == bufferFull {
					s.noRoom = offered
				}
				return why, s.undo(first, before), false
			}
		}
	}
	// Count before the sender can see the spans, so that Sent never exceeds Published.
	s.published.Add(uint64(offered))
	return none, s.sealFilled(), true
}

// fill appends a batch of at most frameSpans to the buffer, as one message or as part of the last
// one. If the batch does not fit, fill appends nothing, unless the buffer was empty. Then no other
// buffer could take more, and fill appends as much as fits. It returns the number of snapshots
// appended.
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

// encode appends one snapshot, and reports whether it fits.
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

// encodeLabels appends a snapshot whose key is not in the label table, and adds the key to the
// table. Oversized keys are truncated and never added.
func (s *shard) encodeLabels(snapshot *Snapshot) bool {
	key := &snapshot.Key
	bound := maxEncodedLen(key)
	if isOversized(key, bound) {
		cut := s.cutter.cut(key)
		_, _, appended := s.append(snapshot, cut, maxEncodedLen(cut))
		s.cutter = cutter{} // remove references to the caller's strings
		return appended
	}
	number, ok, appended := s.append(snapshot, key, bound)
	if ok {
		s.labels.add(key, number)
	}
	return appended
}

// append appends a snapshot with the given key, and reports whether it fits. bound is the maximum
// length of the encoded key.
func (s *shard) append(snapshot *Snapshot, key *Key, bound int) (number uint32, ok, appended bool) {
	b := s.buffer
	if !b.fits(snapshotRoom + bound) {
		return 0, false, false
	}
	// Encode the key after the place of the snapshot. If the snapshot contains the key, it is moved back by
	// a few bytes.
	ahead := len(b.frames) + snapshotRoom
	raw := wire.AppendKey(b.frames[ahead:ahead:cap(b.frames)], key)
	number, ok = s.appendRaw(snapshot, raw)
	return number, ok, true
}

// appendRaw appends a snapshot that fits, with the number of its key, or the key itself if it has
// none.
func (s *shard) appendRaw(snapshot *Snapshot, raw []byte) (number uint32, ok bool) {
	number, ok = s.number(s.buffer, raw)
	if ok {
		s.buffer.appendNumbered(snapshot, number)
	} else {
		s.buffer.appendWhole(snapshot, raw)
	}
	return number, ok
}

// number returns the number of a key in the buffer. It defines the key at its first use, if there
// is room.
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

// A batch that does not fit into the rest of a buffer continues in the next one. Nothing of it may be sent
// before its last snapshot has been encoded, so the buffers that it has filled are kept in a chain.

// advance continues with an empty buffer, or returns the reason why there is none.
func (s *shard) advance() (why reason) {
	if s.chain+1 == len(s.pool.buffers) {
		return tooLarge
	}
	fresh := s.pool.take()
	if fresh == nil {
		return bufferFull
	}
	if s.buffer != nil {
		s.buffer.next = s.filled
		s.filled = s.buffer
		s.chain++
	}
	s.buffer, s.noRoom = fresh, 0
	clear(s.keys[:])
	clear(s.known[:])
	s.labels.reset()
	return none
}

// sealFilled passes the chain to the sender, oldest first.
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

// undo removes a batch: it frees the buffers that the batch has begun, and resets the first buffer
// to its state before. If the key table no longer belongs to the first buffer, it seals that.
func (s *shard) undo(first *buffer, before mark) (sealed bool) {
	hasAdvanced := s.buffer != first
	if hasAdvanced {
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
	if hasAdvanced {
		// The key table belongs to another buffer now, so nothing can be added to this one.
		s.seal()
	}
	return hasAdvanced
}

// seal passes the current buffer, if there is one, to the sender.
func (s *shard) seal() {
	if s.buffer != nil {
		s.pool.seal(s.buffer)
		s.buffer, s.noRoom = nil, 0
		s.labels.forget()
	}
}
