package registry

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/mask"
)

// admitter finds the outcome for one key. It first resolves the labels: each has a number, or is
// pending because its budget has a row for it, or its mask takes its place, or it is lost. Then it
// looks for the row of the key. Only if there is one, the pending labels get their numbers and
// take the rows of their budgets, so that a key without a row costs no budget and no memory.
type admitter struct {
	*tables
	id         OriginID
	origin     *origin
	words      []uint32    // of the key
	anyBlocked [lists]bool // tags collapsed
	pending    []pendingLabel
	came       []uint64  // identities of the key as it came, by word
	unplaced   []uint64  // identities of values, and of keys, without a row
	admission  Admission // as far as it is known
	scratch    []byte    // texts that are made for the key, and last until the next one
	tagKeys    []*tagKey // the first newTagKeys are those of pending tag keys; the memory is used again
	newTagKeys int
}

// pendingLabel is a label that its budget has a row for, and that has no number yet.
type pendingLabel struct {
	label
	budget *budget // nil for a collapsed tag
	part   recurrence
}

// admit admits a key.
func (a *admitter) admit(id OriginID, key *span.Key) Admission {
	a.begin(id)
	a.resolve(key)
	identity := a.rowIdentity()
	if row, ok := a.rows.find(a.words, identity); ok { // no label of such a key is pending
		a.rows.list[row].recurred = true
		return a.admitted(row)
	}
	known := a.recurrence(identity)
	from, ok := a.rowBudget.find(a.origin, known)
	if !ok {
		return a.overflow(identity)
	}
	bytes := a.commit() + rowBytes(a.words)
	a.rowBudget.take(a.origin, from, bytes)
	h := a.historyOf(known)
	if from.isReserve {
		h.next = steady // or an origin below its fair share would not grow to it
	}
	return a.admitted(a.rows.add(a.words, identity, h, KeyEntry{id, a.labels.keyOf(a.words)}))
}

func (a *admitter) begin(id OriginID) {
	a.id, a.origin = id, &a.origins.list[id]
	a.words, a.pending, a.unplaced, a.scratch = a.words[:0], a.pending[:0], a.unplaced[:0], a.scratch[:0]
	a.came, a.newTagKeys, a.anyBlocked, a.admission = a.came[:0], 0, [lists]bool{}, Admission{}
}

// admitted is the admission of a key that has a row.
func (a *admitter) admitted(id KeyID) Admission {
	a.admission.ID, a.admission.Hash = id, partitionOf(a.rows.list[id].identity)
	if !a.admission.Whole() {
		a.unplaced = append(a.unplaced, a.identityAsItCame())
	}
	a.admission.Recurs = a.filter.add(a.unplaced)
	for _, l := range maskedLabels {
		if a.admission.Masked.Has(l) {
			a.masked[l]++
		}
	}
	return a.admission
}

// partitionOf decides the partition of a row. It is the same in every interval, as the row's
// identity is.
func partitionOf(identity uint64) uint32 { return uint32(identity>>32 ^ identity) }

// overflow is the admission of a key that finds no row.
func (a *admitter) overflow(identity uint64) Admission {
	if a.unplaced = append(a.unplaced, identity); !a.admission.Whole() {
		a.unplaced = append(a.unplaced, a.identityAsItCame())
	}
	for i := range a.pending {
		if p := &a.pending[i]; p.budget != nil {
			a.unplaced = append(a.unplaced, p.identity)
			*a.lostOf(&p.label)++
		}
	}
	admission := a.unlabelled(a.id)
	admission.Recurs = a.filter.add(a.unplaced)
	return admission
}

// lostOf counts the keys that have lost a label.
func (a *admitter) lostOf(l *label) *uint64 {
	if l.isTag() {
		return &a.tagsOf(l.tagKey).lost
	}
	return &a.lost[l.scope.kind]
}

// resolve resolves the labels of a key.
func (a *admitter) resolve(k *span.Key) {
	status := absentID
	if k.HTTPStatus != 0 { // a number, but nothing keeps a client from sending any
		from := len(a.scratch)
		a.scratch = strconv.AppendUint(a.scratch, uint64(k.HTTPStatus), 10)
		status = a.text(span.LabelHTTPStatus, stringOf(a.scratch[from:]))
	} else {
		a.came = append(a.came, uint64(absentID))
	}
	a.words = append(a.words, uint32(a.id), status, uint32(k.Facts()))
	for l := range span.FirstList {
		if text := *k.Text(l); text != "" {
			a.words = append(a.words, a.text(l, text))
		} else {
			a.words, a.came = append(a.words, absentID), append(a.came, uint64(absentID))
		}
	}
	for list := span.FirstList; list < span.EndOfLists; list++ {
		tags := *k.Tags(list)
		a.words = append(a.words, uint32(len(tags)))
		for _, tag := range tags {
			a.words = append(a.words, a.tag(list, tag))
		}
	}
	a.words = orderTags(a.words, &a.anyBlocked)
}

// text resolves a text, and masks it only if it would be lost otherwise. A lost status is absent,
// because no number says that it is blocked.
func (a *admitter) text(l span.Label, text string) labelID {
	if text == span.Blocked {
		a.came = append(a.came, uint64(blockedID))
		return blockedID // the client has budgets too: what it collapsed meets what is collapsed here
	}
	named, masks := a.labelOf(int32(l), text), a.config.Masking
	a.came = append(a.came, named.identity)
	if masks == MaskAlways && isMaskable(l) {
		if mask, ok := a.mask(l, text); ok {
			a.unplaced = append(a.unplaced, named.identity)
			a.admission.Masked |= setOf(l)
			named = a.labelOf(int32(l), mask)
		}
	}
	budget := &a.origin.budgets[l]
	if id, ok := a.place(budget, named); ok {
		return id
	}
	if masks == MaskOverBudget && isMaskable(l) {
		if mask, ok := a.mask(l, text); ok {
			masked := a.labelOf(int32(l), mask)
			masked.isMask = true
			if id, ok := a.place(budget, masked); ok {
				a.admission.Masked |= setOf(l)
				return id
			}
		}
	}
	a.lose(l, &a.lost[l])
	if l == span.LabelHTTPStatus {
		return absentID
	}
	return blockedID
}

// mask returns the mask of a text, if it has one that fits its label. It may be longer than a
// text that was cut to the limit, or than what a page shows.
func (a *admitter) mask(l span.Label, text string) (name string, ok bool) {
	from := len(a.scratch)
	a.scratch, ok = mask.Append(a.scratch, text)
	name = stringOf(a.scratch[from:])
	return name, ok && len(name) <= min(l.MaxBytes(), max(len(text), 100))
}

// labelOf is a label of the origin at hand, which may have a number or not.
func (a *admitter) labelOf(kind int32, text string) label {
	name := labelName{scope{a.id, kind}, text}
	return label{labelName: name, identity: a.origin.identityOf(name)}
}

// place returns the number of a label, or makes it pending if its budget has a row for it.
func (a *admitter) place(b *budget, l label) (id labelID, ok bool) {
	if id, ok = a.find(&l); ok {
		if id < pendingID && !l.isMask && a.labels.list[id].isMask {
			a.labels.list[id].isMask = false
			b.masks--
		}
		return id, true
	}
	known := a.recurrence(l.identity)
	from, ok := b.find(known, l.isMask, a.pendingOf)
	if !ok {
		a.unplaced = append(a.unplaced, l.identity)
		return absentID, false
	}
	l.history = a.historyOf(known)
	a.pending = append(a.pending, pendingLabel{l, b, from})
	return pendingID + labelID(len(a.pending)-1), true
}

// pendingOf is how many pending labels of the key take a row from a part of a budget.
func (a *admitter) pendingOf(b *budget, from recurrence) (n int) {
	for i := range a.pending {
		if a.pending[i].budget == b && a.pending[i].part == from {
			n++
		}
	}
	return n
}

// find returns the number of a label, or what stands for it if the key has it twice.
func (a *admitter) find(l *label) (id labelID, ok bool) {
	if id, ok = a.labels.find(l.labelName, l.identity); ok {
		a.labels.list[id].recurred = true
		return id, true
	}
	for i := range a.pending {
		if a.pending[i].labelName == l.labelName {
			return pendingID + labelID(i), true
		}
	}
	return absentID, false
}

// recurrence is what is known of a value or a whole key from the previous interval, and of those of
// a new origin from this one.
func (a *admitter) recurrence(identity uint64) recurrence {
	if known, hadRow := a.previous.known[identity]; hadRow {
		return known
	}
	if a.filter.before.has(identity) || a.origin.isNew && a.filter.once.has(identity) {
		return seen
	}
	return open
}

// historyOf is the history of a value or a whole key that gets a row now.
func (a *admitter) historyOf(known recurrence) history {
	switch {
	case a.origin.isNew: // what is known is of this interval
		return history{next: held, recurred: known == seen}
	case known == open:
		return history{next: held}
	}
	return history{next: steady}
}

// lose notes that the key has lost a label, which is counted in keys.
func (a *admitter) lose(l span.Label, keys *uint64) {
	a.admission.Collapsed |= setOf(l)
	*keys++
}

// tag resolves a tag, by the budget of its tag key.
func (a *admitter) tag(list span.Label, tag string) labelID {
	if tag == span.Blocked {
		a.came = append(a.came, uint64(blockedID))
		return a.blocked(list, blockedID)
	}
	named := a.labelOf(int32(list), tag)
	a.came = append(a.came, named.identity)
	text, value, _ := strings.Cut(tag, ":")
	key, ok := a.tagKey(list, text)
	if !ok {
		a.lose(list, &a.lost[list])
		return a.blocked(list, blockedID)
	}
	if value != span.Blocked {
		named.tagKey = key
		tags := a.tagsOf(key)
		if id, ok := a.place(&tags.budget, named); ok {
			return id
		}
		a.lose(list, &tags.lost)
	}
	return a.blockedTag(list, key, text)
}

// tagKey returns the number of a tag key, or what stands for a pending one.
func (a *admitter) tagKey(list span.Label, text string) (labelID, bool) {
	kind, before := tagKeyKind(list), len(a.pending)
	id, ok := a.place(&a.origin.budgets[kind], a.labelOf(kind, text))
	if len(a.pending) > before {
		key := &a.pending[before]
		if a.newTagKeys == len(a.tagKeys) {
			a.tagKeys = append(a.tagKeys, new(tagKey))
		}
		key.tags = a.tagKeys[a.newTagKeys]
		a.newTagKeys++
		limit := a.config.tagBudget(list, text)
		kept := a.previous.tagKeys[key.identity]
		*key.tags = tagKey{budget: newBudget(limit, kept, false), limit: limit}
	}
	return id, ok
}

func (a *admitter) tagsOf(key labelID) *tagKey {
	if key >= pendingID {
		return a.pending[key-pendingID].tags
	}
	return a.labels.list[key].tags
}

// blockedTag resolves a tag that has lost its value. It takes no row of a budget.
func (a *admitter) blockedTag(list span.Label, key labelID, text string) labelID {
	from := len(a.scratch)
	a.scratch = append(append(append(a.scratch, text...), ':'), span.Blocked...)
	blocked := a.labelOf(int32(list), stringOf(a.scratch[from:]))
	id, ok := a.find(&blocked)
	if !ok {
		id = pendingID + labelID(len(a.pending))
		blocked.tagKey, blocked.isBlocked = key, true
		a.pending = append(a.pending, pendingLabel{label: blocked})
	}
	return a.blocked(list, id)
}

// blocked notes that one of a list's tags has collapsed, here or in the client, into a label.
func (a *admitter) blocked(list span.Label, into labelID) labelID {
	a.anyBlocked[list-span.FirstList] = true
	return into
}

// commit gives the pending labels their numbers and the rows of their budgets, and returns their
// memory. The numbers are in the order of what stood for them, so tags stay in order.
func (a *admitter) commit() (bytes int) {
	next := labelID(len(a.labels.list))
	numbered := func(id labelID) labelID {
		if id < pendingID {
			return id
		}
		return next + id - pendingID
	}
	for i := range a.pending {
		p := &a.pending[i]
		l := p.label
		l.text, l.tagKey = strings.Clone(l.text), numbered(l.tagKey)
		if l.tags != nil {
			tags := *l.tags
			l.tags = &tags
		}
		if l.isTag() && p.budget != nil { // its tag key has a number by now
			p.budget = &a.labels.list[l.tagKey].tags.budget
		}
		if p.budget != nil {
			p.budget.take(p.part, l.isMask)
		}
		a.labels.add(l)
		bytes += labelBytes(&l)
	}
	for i, id := range a.words {
		a.words[i] = numbered(id)
	}
	return bytes
}

// rowIdentity is a hash of the resolved key that is the same in every interval. The numbers of
// labels are not, and therefore neither is their order.
func (a *admitter) rowIdentity() uint64 {
	hash := mixed(a.origin.identity^uint64(a.words[wordFacts]), a.identityAt(a.words[wordStatus]))
	for _, id := range a.words[wordTexts:wordTags] {
		hash = mixed(hash, a.identityAt(id))
	}
	sum := uint64(0)
	for words := a.words[wordTags:]; len(words) > 0; words = words[1+words[0]:] {
		for _, id := range words[1 : 1+words[0]] {
			sum += mixed(0, a.identityAt(id))
		}
	}
	return mixed(hash, sum)
}

// identityAsItCame is the rowIdentity that the key has in an interval in which all of its labels
// have rows.
func (a *admitter) identityAsItCame() uint64 {
	const texts = 1 + int(span.FirstList) // the status and the texts
	hash, sum := a.origin.identity^uint64(a.words[wordFacts]), uint64(0)
	for _, identity := range a.came[:texts] {
		hash = mixed(hash, identity)
	}
	for _, identity := range a.came[texts:] {
		sum += mixed(0, identity)
	}
	return mixed(hash, sum)
}

// identityAt is the identity of a label, by its number or what stands for it.
func (a *admitter) identityAt(id labelID) uint64 {
	switch {
	case id < firstID:
		return uint64(id)
	case id < pendingID:
		return a.labels.list[id].identity
	}
	return a.pending[id-pendingID].identity
}

// stringOf are the same bytes, not a copy.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
