package registry

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// admit judges a whole key.
func (j *judge) admit(id OriginID, key *span.Key, isRetry bool) Admission {
	j.begin(id, isRetry)
	j.key(key)
	identity := j.rowIdentity()
	if row, ok := j.rows.find(j.words, identity); ok { // none has a label without a number
		j.rows.list[row].cameAgain = j.rows.list[row].cameAgain || !isRetry
		return j.admitted(row)
	}
	// Where one of its labels has waited, the key had another name meanwhile, so it is known as
	// well as that label.
	known := j.familiarity(identity)
	from := j.shares.find(id, max(known, min(j.needed, cameBefore)))
	if from == noSource {
		return j.overflow(identity, known)
	}
	bytes := j.numberFresh()
	j.shares.take(id, from, bytes+rowBytes(j.words))
	return j.admitted(j.rows.add(j.words, identity, KeyEntry{id, j.labels.keyOf(j.words)}))
}

// admitted is the admission of a key that has a row.
func (j *judge) admitted(id KeyID) Admission {
	j.admission.ID, j.admission.Hash = id, partitionOf(j.rows.list[id].identity)
	j.note()
	return j.admission
}

// partitionOf decides the partition of a row, which is the same in every interval as its
// identity is.
func partitionOf(identity uint64) uint32 { return uint32(identity>>32 ^ identity) }

// overflow is the admission of a key that finds no row: its labels give their places back.
func (j *judge) overflow(identity uint64, known familiarity) Admission {
	j.waitFor(j.shares.gate(j.id))
	j.cameWithoutPlace(identity, known)
	for i := range j.fresh {
		j.giveUp(&j.fresh[i])
	}
	j.admission.Masked = 0
	j.note()
	to := j.nameless(j.id)
	to.Waits, to.CameAgain = j.admission.Waits, j.admission.CameAgain
	return to
}

// giveUp gives back the place of a label whose key found no row.
func (j *judge) giveUp(f *fresh) {
	if f.budget == nil {
		return
	}
	f.budget.giveBack(f.known)
	j.unplaced = append(j.unplaced, f.identity)
	lost := &j.lost[f.scope.kind]
	switch {
	case f.tags != nil:
		j.spare = append(j.spare, f.tags)
	case f.isTag():
		lost = &j.tagsOf(f.tagKey).lost
	}
	if !j.isRetry {
		*lost++
	}
}

// note notes what came without a place, and which labels are masked.
func (j *judge) note() {
	if j.isRetry {
		return
	}
	for _, identity := range j.unplaced {
		j.seen.add(j.generation, identity)
	}
	for _, l := range maskedLabels {
		if j.admission.Masked.Has(l) {
			j.masked[l]++
		}
	}
}

// numberFresh gives the labels that have places their numbers, and returns their memory. The
// numbers are in the order of what stood for them, so tags stay in order.
func (j *judge) numberFresh() (bytes int) {
	first := labelID(len(j.labels.list))
	numbered := func(id labelID) labelID {
		if id < freshID {
			return id
		}
		return first + id - freshID
	}
	for i := range j.fresh {
		l := j.fresh[i].label
		l.text, l.tagKey = strings.Clone(l.text), numbered(l.tagKey)
		j.labels.add(l)
		bytes += labelBytes(&l)
	}
	for i, id := range j.words {
		j.words[i] = numbered(id)
	}
	return bytes
}

// rowIdentity is a hash of the judged key that is the same in every interval: the numbers of
// labels are not, and so their order is not.
func (j *judge) rowIdentity() uint64 {
	hash := mixed(j.origin.identity^uint64(j.words[wordFacts]), j.identityAt(j.words[wordStatus]))
	for _, id := range j.words[wordTexts:wordTags] {
		hash = mixed(hash, j.identityAt(id))
	}
	for words := j.words[wordTags:]; len(words) > 0; words = words[1+words[0]:] {
		sum := uint64(0)
		for _, id := range words[1 : 1+words[0]] {
			sum += mixed(0, j.identityAt(id))
		}
		hash = mixed(hash, sum)
	}
	return hash
}

// identityAt is the identity of a label, by its number or what stands for it.
func (j *judge) identityAt(id labelID) uint64 {
	switch {
	case id < firstID:
		return uint64(id)
	case id < freshID:
		return j.labels.list[id].identity
	}
	return j.fresh[id-freshID].identity
}
