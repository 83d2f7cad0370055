package client

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
