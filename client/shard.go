package client

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/cpu"
)

// shard is where publishers encode. There are several, so that publishers on
// different processors meet different ones.
type shard struct {
	mu sync.Mutex // publishers only try it; see lock

	pool *pool
	gate *gate

	buffer *buffer // being filled, or nil
	filled *buffer // what the batch that is being put filled before it, chained
	chain  int     // how many those are
	noRoom int     // the smallest batch that found none in buffer, or 0
	keys   keyTable
	known  encodedTable
	labels labelTable
	cutter cutter

	published atomic.Uint64
	refused   losses

	_ cpu.CacheLinePad
}

// lock is for the sender. It does not queue for the mutex: a publisher who
// unlocks one that is queued for has to wake the waiter, which is a system call.
func (s *shard) lock() {
	for tries := 0; !s.mu.TryLock(); tries++ {
		if tries < 16 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// publish puts the batch, or counts why not.
func (s *shard) publish(batch []Snapshot) (accepted, sealed bool) {
	why, sealed, accepted := s.put(batch)
	if !accepted {
		s.refused.add(why, len(batch))
	}
	return accepted, sealed
}

// put encodes the batch, all of it or nothing.
func (s *shard) put(batch []Snapshot) (why reason, sealed, accepted bool) {
	// The gate is read under the lock: whoever sealed the shard after closing
	// the gate knows that nothing comes any more.
	if why := s.gate.shut(); why != none {
		return why, false, false
	}
	if s.noRoom != 0 && len(batch) >= s.noRoom && s.pool.free.isEmpty() {
		return bufferFull, false, false // as it was before, and not worth another try
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
	// Counted before the sender can see it, so that nothing is sent that was
	// not published.
	s.published.Add(uint64(offered))
	return none, s.sealFilled(), true
}

// fill appends a batch of at most frameSpans to the buffer as one message, or
// to the last one. Where it does not fit it appends nothing, unless the buffer
// is fresh: then no other would take more, and the message is cut.
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

// encode appends one snapshot, unless it does not fit.
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

// encodeEncoded appends a snapshot whose key was encoded before.
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

// encodeLabels appends a snapshot whose labels are not known yet. Those that must
// be cut are never known.
func (s *shard) encodeLabels(snapshot *Snapshot) bool {
	key := &snapshot.Key
	bound := keyBound(key)
	if isOversized(key, bound) {
		cut := s.cutter.cut(key)
		_, _, appended := s.append(snapshot, cut, keyBound(cut))
		s.cutter = cutter{} // lets go of the caller's strings
		return appended
	}
	number, ok, appended := s.append(snapshot, key, bound)
	if ok {
		s.labels.learn(key, number)
	}
	return appended
}

// append appends a snapshot with this key, unless it does not fit.
func (s *shard) append(snapshot *Snapshot, key *Key, bound int) (number uint32, ok, appended bool) {
	b := s.buffer
	if !b.fits(snapshotRoom + bound) {
		return 0, false, false
	}
	// The key is encoded a little ahead of where it would stand in the message:
	// written whole, it moves back by a few bytes.
	ahead := len(b.frames) + snapshotRoom
	raw := wire.AppendKey(b.frames[ahead:ahead:cap(b.frames)], key)
	number, ok = s.appendRaw(snapshot, raw)
	return number, ok, true
}

// appendRaw appends a snapshot for which there is room, by number if its key has
// one.
func (s *shard) appendRaw(snapshot *Snapshot, raw []byte) (number uint32, ok bool) {
	number, ok = s.number(s.buffer, raw)
	if ok {
		s.buffer.appendNumbered(snapshot, number)
	} else {
		s.buffer.appendWhole(snapshot, raw)
	}
	return number, ok
}

// number is the number of a key in this buffer, which it defines on its first
// use while there is room.
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

// A batch that does not fit into what is left of a buffer goes on in the next.
// Until its last snapshot has found room nothing of it may be sent, so the
// buffers that it filled wait in a chain.

// advance goes on to a fresh buffer, or says why there is none.
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

// sealFilled hands the chain to the sender, the oldest first.
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

// undo takes a batch back: the buffers that it began are free again, and the
// first is as it was.
func (s *shard) undo(first *buffer, before mark) (sealed bool) {
	isMoved := s.buffer != first
	if isMoved {
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
	if isMoved {
		// The key table has gone on, so nothing can be added to it any more.
		s.seal()
	}
	return isMoved
}

// seal hands the buffer, if there is one, to the sender.
func (s *shard) seal() {
	if s.buffer != nil {
		s.pool.seal(s.buffer)
		s.buffer, s.noRoom = nil, 0
		s.labels.forget()
	}
}
