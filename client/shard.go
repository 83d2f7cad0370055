package client

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
)

// shard encodes the snapshots of publishers. There are several, so that publishers on different processors rarely
// contend for the same one.
type shard struct {
	mu sync.Mutex // publishers use TryLock only, and the sender uses lockByPolling

	pool *pool
	gate *gate

	buffer        *buffer    // buffer to append to, or nil
	filled        bufferList // buffers that the current batch has filled, oldest first
	rejectedSpans int        // length of the last batch that found no free buffer; 0 if one was free since

	// Numbers of the keys that buffer defines. Each table finds them by another property of the key.
	numbersByBytes  keyTable
	numbersByID     encodedTable // by ID of an EncodedKey
	numbersByLabels labelTable

	truncator keyTruncator

	published atomic.Uint64
	refused   losses

	_ cpu.CacheLinePad
}

// lockByPolling locks s.mu, for the goroutine that sends buffers. It does not wait for the mutex: if it did, a
// publisher that unlocks the mutex would have to make a system call to wake it up.
func (s *shard) lockByPolling() {
	const attemptsBeforeSleep = 16
	const pollInterval = 20 * time.Microsecond
	for attempt := 0; !s.mu.TryLock(); attempt++ {
		if attempt < attemptsBeforeSleep {
			runtime.Gosched()
		} else {
			time.Sleep(pollInterval)
		}
	}
}

// publish encodes the batch, or counts it as refused. hasFullBuffer reports whether the sender can send a buffer now.
func (s *shard) publish(batch []Snapshot) (accepted, hasFullBuffer bool) {
	refusal := s.refusalBeforeEncoding(len(batch))
	if refusal == noReason {
		refusal, hasFullBuffer = s.encodeBatch(batch)
	}
	if refusal != noReason {
		s.refused.add(refusal, len(batch))
		return false, hasFullBuffer
	}
	return true, hasFullBuffer
}

// refusalBeforeEncoding returns the reason to refuse a batch with the given number of spans without trying to encode
// it, or noReason.
func (s *shard) refusalBeforeEncoding(spans int) reason {
	// The gate is checked while the shard is locked, so that no snapshots are added after the sender has closed the
	// gate and then taken the buffer of the shard.
	if closedReason := s.gate.closedReason(); closedReason != noReason {
		return closedReason
	}
	if s.isProbablyTooLarge(spans) {
		return bufferFull
	}
	return noReason
}

// encodeBatch encodes all spans of the batch into the buffers of the shard and returns noReason. If they do not fit, it
// removes the encoded ones again and returns the reason. hasSubmitted reports whether it has passed a buffer to the
// sender.
func (s *shard) encodeBatch(batch []Snapshot) (refusal reason, hasSubmitted bool) {
	firstBuffer := s.buffer
	var stateBefore bufferState
	if firstBuffer != nil {
		stateBefore = firstBuffer.state()
	}
	refusal = s.appendBatch(batch)
	if refusal == noReason {
		s.published.Add(uint64(len(batch))) // before the sender can send the spans, so that Published >= Sent
		return noReason, s.submitFilled()
	}
	if refusal == bufferFull {
		s.rejectedSpans = len(batch) // for isProbablyTooLarge
	}
	hasSubmitted = s.rollBack(firstBuffer, stateBefore) // can submit firstBuffer with the spans of earlier batches
	return refusal, hasSubmitted
}

// isProbablyTooLarge reports whether a batch with the given number of spans is not worth encoding: no buffer is free,
// and a batch with at most as many spans was rejected for this reason before.
func (s *shard) isProbablyTooLarge(spans int) bool {
	hasRejected := s.rejectedSpans > 0
	return hasRejected && spans >= s.rejectedSpans && s.pool.free.isEmpty()
}

// appendBatch appends the spans of a batch to the current buffer, and continues in an empty buffer each time one is
// full. It returns noReason, or the reason why no empty buffer is available. It may then have appended a part of the
// batch.
func (s *shard) appendBatch(batch []Snapshot) reason {
	for len(batch) > 0 {
		group := batch[:min(len(batch), messageSpans)]
		appended := s.appendGroup(group)
		if appended > 0 {
			batch = batch[appended:]
			continue
		}
		if refusal := s.startBuffer(); refusal != noReason {
			return refusal
		}
	}
	return noReason
}

// appendGroup appends a group of spans to the current buffer, in one message, and returns the number of appended
// spans. To an empty buffer, it appends as many as fit. To any other buffer, it appends all of them or none.
func (s *shard) appendGroup(group []Snapshot) (appended int) {
	b := s.buffer
	hasSpaceForHeader := b != nil && b.fits(headerRoom)
	if !hasSpaceForHeader {
		return 0
	}
	stateBefore := b.state()
	isBufferEmpty := b.spanCount == 0
	if !b.canExtendMessage(len(group)) {
		b.beginMessage()
	}
	for i := range group {
		if !s.appendSnapshot(&group[i]) {
			break
		}
		appended++
	}
	fitsGroup := appended == len(group)
	if !fitsGroup && !isBufferEmpty {
		b.restore(stateBefore)
		return 0
	}
	b.countAppended(appended)
	return appended
}

// appendSnapshot appends a snapshot to the current buffer. It returns false if the snapshot does not fit.
func (s *shard) appendSnapshot(snapshot *Snapshot) bool {
	if !s.buffer.fits(maxBytesWithoutKey) {
		return false
	}
	if snapshot.Encoded != nil {
		return s.appendPreEncoded(snapshot, snapshot.Encoded)
	}
	if number, ok := s.numbersByLabels.find(&snapshot.Key); ok {
		s.buffer.appendWithNumber(snapshot, uint32(number))
		return true
	}
	return s.encodeAndAppend(snapshot)
}

// appendPreEncoded appends a span whose labels the caller of Publish has encoded in advance as key. If the current
// buffer contains the key already, the span only refers to its number. appendPreEncoded returns false if the span does
// not fit. The caller must have checked that a span without its key fits.
func (s *shard) appendPreEncoded(snapshot *Snapshot, key *EncodedKey) bool {
	slot := &s.numbersByID[key.id%tableSlots] // the only possible slot for this key; it can contain another key
	isInBuffer := slot.id == key.id           // startBuffer clears all slots, so they describe the current buffer
	if isInBuffer {
		s.buffer.appendWithNumber(snapshot, slot.number)
		return true
	}
	if !s.buffer.fits(maxBytesWithoutKey + len(key.raw)) {
		return false
	}
	keyNumber, hasNumber := s.appendWithEncodedKey(snapshot, key.raw)
	if hasNumber {
		*slot = encodedSlot{key.id, keyNumber}
	}
	return true
}

// encodeAndAppend encodes the labels of a span (its key) and appends the span to the current buffer. If the buffer
// assigns a number to the labels, encodeAndAppend stores this number for the next span with the same labels. It
// returns false if the span does not fit.
func (s *shard) encodeAndAppend(snapshot *Snapshot) bool {
	key := &snapshot.Key
	maxKeyLength := maxEncodedLength(key)
	if isOversized(key, maxKeyLength) {
		return s.appendTruncated(snapshot)
	}
	if !s.buffer.fits(maxBytesWithoutKey + maxKeyLength) {
		return false
	}
	keyNumber, hasNumber := s.appendWithEncodedKey(snapshot, s.buffer.encodeKey(key))
	if hasNumber {
		s.numbersByLabels.add(key, keyNumber)
	}
	return true
}

// appendTruncated appends a span with truncated labels to the current buffer. It returns false if not even the
// truncated labels fit.
func (s *shard) appendTruncated(snapshot *Snapshot) bool {
	key := s.truncator.truncate(&snapshot.Key)
	fits := s.buffer.fits(maxBytesWithoutKey + maxEncodedLength(key))
	if fits {
		s.appendWithEncodedKey(snapshot, s.buffer.encodeKey(key))
	}
	s.truncator = keyTruncator{} // no longer refers to the caller's strings
	return fits
}

// appendWithEncodedKey appends a span to the current buffer, and returns the number that stands for its labels.
// encodedKey is the encoding of the labels. If the buffer has no space to define another number, the appended span
// contains encodedKey, and hasNumber is false. The caller must have checked that the span fits.
func (s *shard) appendWithEncodedKey(snapshot *Snapshot, encodedKey []byte) (keyNumber uint32, hasNumber bool) {
	keyNumber, hasNumber = s.findOrDefineKey(encodedKey)
	if hasNumber {
		s.buffer.appendWithNumber(snapshot, keyNumber)
	} else {
		s.buffer.appendWithKey(snapshot, encodedKey)
	}
	return keyNumber, hasNumber
}

// findOrDefineKey returns the number of an encoded key in the current buffer. If the key has none yet,
// findOrDefineKey assigns the next number to it. It returns false if the buffer has no space for another key.
func (s *shard) findOrDefineKey(encodedKey []byte) (number uint32, hasNumber bool) {
	b := s.buffer
	hash := hashKey(encodedKey)
	slot := s.numbersByBytes.find(encodedKey, hash, b.definitions) // empty if the key has no number yet
	if !slot.isEmpty() {
		return uint32(slot.number), true
	}
	if !b.fitsKey(len(encodedKey)) {
		return 0, false
	}
	number = b.defineKey(encodedKey)
	keyStart := len(b.definitions) - len(encodedKey) // b.definitions now ends with the key
	*slot = keySlot{
		hash: hash, offset: uint16(keyStart), size: uint16(len(encodedKey)), number: uint16(number),
	}
	return number, true
}

// startBuffer replaces the current buffer with an empty one, and returns noReason. It appends the current buffer to
// s.filled, whose buffers are sent after the whole batch is encoded. If there is no empty buffer, it changes nothing and
// returns the reason.
func (s *shard) startBuffer() reason {
	buffersOfBatch := s.filled.length + 1 // with the current buffer
	usesAllBuffers := buffersOfBatch == len(s.pool.buffers)
	if usesAllBuffers {
		return tooLarge
	}
	emptyBuffer := s.pool.take()
	if emptyBuffer == nil {
		return bufferFull
	}
	if s.buffer != nil {
		s.filled.append(s.buffer)
	}
	s.buffer = emptyBuffer
	s.rejectedSpans = 0 // a batch of the rejected length can fit again, because a buffer was free
	s.clearKeyNumbers()
	return noReason
}

// clearKeyNumbers empties the tables of key numbers, because an empty buffer has not assigned any.
func (s *shard) clearKeyNumbers() {
	clear(s.numbersByBytes[:])
	clear(s.numbersByID[:])
	s.numbersByLabels.startBuffer()
}

// submitFilled passes the buffers in s.filled to the sender. It returns false if there are none.
func (s *shard) submitFilled() bool {
	if s.filled.length == 0 {
		return false
	}
	for s.filled.length > 0 {
		s.pool.submit(s.filled.removeFirst())
	}
	return true
}

// rollBack removes the spans of a batch that does not fit completely. firstBuffer is the buffer in which the batch
// began, or nil if there was none, and stateBefore is its state before the batch. If the batch has taken more buffers,
// rollBack releases them and passes firstBuffer, unless it is nil, to the sender. It returns true if it does so.
func (s *shard) rollBack(firstBuffer *buffer, stateBefore bufferState) (hasSubmitted bool) {
	if firstBuffer != nil {
		firstBuffer.restore(stateBefore)
	}
	hasTakenMore := s.buffer != firstBuffer
	if !hasTakenMore {
		return false
	}
	s.releaseBuffersExcept(firstBuffer)
	s.buffer = firstBuffer
	// No more spans can be appended to firstBuffer, because startBuffer has cleared the tables of its key numbers.
	return s.submitBuffer()
}

// releaseBuffersExcept releases the current buffer and the buffers that the batch has filled, without firstBuffer.
func (s *shard) releaseBuffersExcept(firstBuffer *buffer) {
	s.pool.release(s.buffer)
	for s.filled.length > 0 {
		b := s.filled.removeFirst()
		if b != firstBuffer {
			s.pool.release(b)
		}
	}
}

// submitBuffer passes the current buffer to the sender. It returns false if there is none.
func (s *shard) submitBuffer() bool {
	s.numbersByLabels.removeAll() // so that the caller's strings can be freed
	if s.buffer == nil {
		return false
	}
	s.pool.submit(s.buffer)
	s.buffer = nil
	s.rejectedSpans = 0
	return true
}
