package registry

import "math/bits"

// find searches for the row of the judged key.
func (j *judge) find() (id KeyID, partition uint32, ok bool) {
	if len(j.fresh) > 0 {
		return 0, 0, false
	}
	return j.registry.rows.find(hashWords(j.words), j.words)
}

// found is the admission of a judged key that has a row. It has come again by that.
func (j *judge) found(id KeyID, partition uint32) Admission {
	if !j.isRetry {
		j.registry.Repeat(id)
	}
	j.note()
	return Admission{ID: id, Hash: partition, Collapsed: j.collapsed, Folded: j.folder.labels, Waits: j.waits}
}

// overflow is the admission of a judged key that gets no row, for it did not pass the gate of
// rows. It may the next time, if that is not closed.
func (j *judge) overflow(gate sight, identity uint64) Admission {
	if gate < repeated {
		j.unplaced = append(j.unplaced, j.registry.sights.spotOf(identity))
	}
	j.markLabels()
	j.folder.labels = 0
	j.note()
	j.losses.count(&j.freshBy)
	to := j.state().overflow
	to.Waits = j.waits || j.mayWait(gate)
	return to
}

// note notes what the judged key has lost, and which of its labels came that have no place.
func (j *judge) note() {
	j.losses.count(&j.lostBy)
	if !j.isRetry {
		for _, at := range j.unplaced {
			j.registry.sights.add(j.registry.generation, at)
		}
		j.folder.note()
	}
}

// markLabels notes of the labels that have their numbers that they came again.
func (j *judge) markLabels() {
	if !j.isRetry {
		j.registry.repeats.markLabels(j.words)
	}
}

// rowIdentity is a hash of the judged key that is the same in every interval: the numbers of
// labels are not, and so their order is not.
func (j *judge) rowIdentity() uint64 {
	words := j.words
	hash := mixed(j.identity^uint64(words[wordFacts]), j.hashed(words[wordStatus]))
	for _, id := range words[wordTexts:wordTags] {
		hash = mixed(hash, j.hashed(id))
	}
	words = words[wordTags:]
	for range lists {
		tags, sum := words[1:1+words[0]], uint64(0)
		for _, id := range tags {
			sum += mixed(0, j.hashed(id))
		}
		hash = mixed(hash, sum)
		words = words[1+len(tags):]
	}
	return hash
}

// hashed is the hash of a label's text.
func (j *judge) hashed(id labelID) uint64 {
	switch {
	case id < firstID:
		return uint64(id)
	case id < freshID:
		return uint64(j.registry.budgets.labels.at(id).hashed())
	}
	return uint64(j.fresh[id-freshID])
}

// mixed is a hash of two.
func mixed(a, b uint64) uint64 {
	upper, lower := bits.Mul64(a^spread, b^filterSecrets[0])
	return bits.RotateLeft64(a, 23) + upper ^ lower
}

// mayWait says whether what did not pass a gate may pass it the next time.
func (j *judge) mayWait(gate sight) bool {
	return gate == cameAgain || gate == cameBefore && j.isNew
}

// Repeat notes that a key came again that was admitted in this interval, and so did its
// labels. It takes no lock.
func (r *Registry) Repeat(id KeyID) {
	if rows := &r.repeats.rows; !rows.has(uint32(id)) {
		r.repeats.markLabels(r.rows.wordsOf(id))
		rows.mark(uint32(id))
	}
}

// markLabels marks the labels of a key, by its words.
func (r *repeats) markLabels(words []uint32) {
	if len(words) == 0 { // of an overflow row
		return
	}
	r.markLabel(words[wordStatus])
	for _, id := range words[wordTexts:wordTags] {
		r.markLabel(id)
	}
	for words = words[wordTags:]; len(words) > 0; words = words[1+words[0]:] {
		for _, id := range words[1 : 1+words[0]] {
			r.markLabel(id)
		}
	}
}

func (r *repeats) markLabel(id labelID) {
	if id >= firstID && id < freshID {
		r.labels.mark(id)
	}
}
