package registry

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/mask"
)

// admitter admits one key at a time to the interval, in two steps. The first step resolves each
// label of the key to one of:
//
//   - the ID that the label already has
//   - a pending ID, if the label is new and its budget has a free row
//   - the ID of the label's mask, known or pending
//   - blockedID, if the label is lost
//
// The second step looks for the row of the key. Pending labels get their IDs, and take rows of
// their budgets, only if the key has or gets a row. So a key without a row uses neither budget nor
// memory.
type admitter struct {
	*tables
	id            OriginID
	origin        *origin
	words         []uint32       // encoded key, see wordOrigin
	anyBlocked    [lists]bool    // by list of tags, whether it contains a collapsed tag
	pending       []pendingLabel // labels of the key that are new in this interval
	rawIdentities []uint64       // identities of the key's labels as the client sent them
	rejected      []uint64       // identities of the key and its labels, as far as they got no row
	admission     Admission      // result so far
	scratch       []byte         // texts built for the key; overwritten by the next one
	tagKeys       []*tagKey      // memory for pending tag keys, reused by the next key
	newTagKeys    int            // number of tagKeys in use
}

// pendingLabel is a label of the current key that is new in this interval. If the key is admitted,
// the label gets an ID and takes a row of its budget.
type pendingLabel struct {
	label
	budget *budget // nil for a collapsed tag, which takes no row
	share  class   // share of the budget that the row is taken from
}

// takesRow reports whether the label takes a row of a budget.
func (p *pendingLabel) takesRow() bool { return p.budget != nil }

// admit returns the admission of a key to its own row. A key without a row gets one if the budgets
// permit it. Otherwise the key is counted in the overflow row of its origin.
func (a *admitter) admit(id OriginID, key *span.Key) Admission {
	a.begin(id)
	a.resolveLabels(key)
	identity := a.rowIdentity()
	if row, ok := a.rows.find(a.words, identity); ok { // then all labels of the key have IDs, and none is pending
		a.rows.list[row].recurred = true
		return a.admitted(row)
	}
	class := a.classOf(identity)
	source, ok := a.rowBudget.find(a.origin, class)
	if !ok {
		return a.countInOverflowRow(identity)
	}
	labelBytes := a.commit()
	a.rowBudget.take(a.origin, source, labelBytes+rowBytes(a.words))
	history := a.newHistory(class)
	if source.fromReserve {
		history.nextClass = classStable // the row is kept, so an origin can grow up to its fair share
	}
	return a.admitted(a.rows.add(a.words, identity, history, KeyEntry{id, a.labels.keyOf(a.words)}))
}

// begin resets the admitter for a key of the given origin.
func (a *admitter) begin(id OriginID) {
	a.id, a.origin = id, &a.origins.list[id]
	a.words, a.pending, a.rejected, a.scratch = a.words[:0], a.pending[:0], a.rejected[:0], a.scratch[:0]
	a.rawIdentities, a.newTagKeys, a.anyBlocked, a.admission = a.rawIdentities[:0], 0, [lists]bool{}, Admission{}
}

// admitted returns the admission of a key that has a row. It adds the labels that got no row to the
// filter.
func (a *admitter) admitted(id KeyID) Admission {
	a.admission.ID, a.admission.Hash = id, partitionOf(a.rows.list[id].identity)
	if !a.admission.IsUnchanged() {
		a.rejected = append(a.rejected, a.rawIdentity())
	}
	a.admission.AllRecur = a.filter.add(a.rejected)
	for _, l := range maskedLabels {
		if a.admission.Masked.Has(l) {
			a.masked[l]++
		}
	}
	return a.admission
}

// partitionOf returns the hash that decides the partition of a row. Like the row's identity, it is
// the same in every interval.
func partitionOf(identity uint64) uint32 { return uint32(identity>>32 ^ identity) }

// countInOverflowRow returns the admission of a key that gets no row: its spans are counted in the overflow row of
// its origin, without labels. It adds the key, and each of its labels that has no row of its budget, to the filter
// of values without a row. It counts each label that is new in this interval as lost.
func (a *admitter) countInOverflowRow(identity uint64) Admission {
	a.rejected = append(a.rejected, identity)
	if !a.admission.IsUnchanged() {
		a.rejected = append(a.rejected, a.rawIdentity())
	}
	for i := range a.pending {
		if p := &a.pending[i]; p.takesRow() {
			a.rejected = append(a.rejected, p.identity)
			*a.lostCounter(&p.label)++
		}
	}
	admission := a.unlabelled(a.id)
	admission.AllRecur = a.filter.add(a.rejected)
	return admission
}

// lostCounter returns the counter of keys that have lost the given label.
func (a *admitter) lostCounter(l *label) *uint64 {
	if l.isTag() {
		return &a.tagsOf(l.tagKey).lost
	}
	return &a.lost[l.scope.kind]
}

// resolveLabels encodes a key and resolves each of its labels.
func (a *admitter) resolveLabels(k *span.Key) {
	status := absentID
	if k.HTTPStatus != 0 { // resolved like a text: clients can send any number, so it needs a budget
		from := len(a.scratch)
		a.scratch = strconv.AppendUint(a.scratch, uint64(k.HTTPStatus), 10)
		status = a.resolveText(span.LabelHTTPStatus, stringOf(a.scratch[from:]))
	} else {
		a.rawIdentities = append(a.rawIdentities, uint64(absentID))
	}
	a.words = append(a.words, uint32(a.id), status, uint32(k.Facts()))
	for l := range span.FirstList {
		if text := *k.Text(l); text != "" {
			a.words = append(a.words, a.resolveText(l, text))
		} else {
			a.words, a.rawIdentities = append(a.words, absentID), append(a.rawIdentities, uint64(absentID))
		}
	}
	for list := span.FirstList; list < span.EndOfLists; list++ {
		tags := *k.Tags(list)
		a.words = append(a.words, uint32(len(tags)))
		for _, tag := range tags {
			a.words = append(a.words, a.resolveTag(list, tag))
		}
	}
	a.words = orderTags(a.words, &a.anyBlocked)
}

// resolveText returns the ID of the text of a label. Depending on the configuration, it replaces
// the text by its mask always, or only if the text gets no row. A text that is lost becomes
// blockedID. A lost HTTP status becomes absentID, because no number means blocked.
func (a *admitter) resolveText(l span.Label, text string) labelID {
	if text == span.Blocked { // collapsed by the client, which has budgets as well
		a.rawIdentities = append(a.rawIdentities, uint64(blockedID))
		return blockedID
	}
	unmasked, masking := a.newLabel(int32(l), text), a.config.Masking
	a.rawIdentities = append(a.rawIdentities, unmasked.identity)
	preferred := unmasked
	if masking == MaskAlways && isMaskable(l) {
		if mask, ok := a.mask(l, text); ok {
			a.rejected = append(a.rejected, unmasked.identity)
			a.admission.Masked |= setOf(l)
			preferred = a.newLabel(int32(l), mask)
		}
	}
	budget := &a.origin.budgets[l]
	if id, ok := a.idOf(budget, preferred); ok {
		return id
	}
	if masking == MaskOverBudget && isMaskable(l) {
		if mask, ok := a.mask(l, text); ok {
			masked := a.newLabel(int32(l), mask)
			masked.isMask = true
			if id, ok := a.idOf(budget, masked); ok {
				a.admission.Masked |= setOf(l)
				return id
			}
		}
	}
	a.countLost(l, &a.lost[l])
	if l == span.LabelHTTPStatus {
		return absentID
	}
	return blockedID
}

// maxMaskBytes is the maximum length of a mask that is longer than its text.
const maxMaskBytes = 100

// mask returns the mask of a text. It reports false if the text has no mask, or if the mask is too
// long for the label or for a status page: a mask can be longer than its text.
func (a *admitter) mask(l span.Label, text string) (name string, ok bool) {
	from := len(a.scratch)
	a.scratch, ok = mask.Append(a.scratch, text)
	name = stringOf(a.scratch[from:])
	return name, ok && len(name) <= min(l.MaxBytes(), max(len(text), maxMaskBytes))
}

// newLabel returns a label of the current origin, without an ID.
func (a *admitter) newLabel(kind int32, text string) label {
	name := labelName{scope{a.id, kind}, text}
	return label{labelName: name, identity: a.origin.identityOf(name)}
}

// idOf returns the ID of a label, given the budget of its values. A label that is new in this
// interval becomes pending if the budget has a free row, and its ID is the pending one. Otherwise
// idOf adds the label to a.rejected and reports false.
func (a *admitter) idOf(budget *budget, l label) (id labelID, ok bool) {
	if id, ok = a.findAndMark(&l); ok {
		isMask := id < pendingID && a.labels.list[id].isMask
		if isMask && !l.isMask { // a client sends as a name the text that was only a mask before
			a.labels.list[id].isMask = false
			budget.masks--
		}
		return id, true
	}
	class := a.classOf(l.identity)
	share, ok := budget.find(class, l.isMask, a.pendingIn)
	if !ok {
		a.rejected = append(a.rejected, l.identity)
		return absentID, false
	}
	l.history = a.newHistory(class)
	a.pending = append(a.pending, pendingLabel{label: l, budget: budget, share: share})
	return a.lastPendingID(), true
}

// lastPendingID returns the ID of the last pending label.
func (a *admitter) lastPendingID() labelID { return pendingID + labelID(len(a.pending)-1) }

// pendingIn returns the number of pending labels that take a row of the given share of a budget.
func (a *admitter) pendingIn(b *budget, share class) (n int) {
	for i := range a.pending {
		if a.pending[i].budget == b && a.pending[i].share == share {
			n++
		}
	}
	return n
}

// findAndMark returns the ID of a label that was used before in this interval, and marks the label
// as recurring. If the key contains the same new label twice, the second use finds the pending
// label of the first. A pending label is not marked, because both uses belong to one key.
func (a *admitter) findAndMark(l *label) (id labelID, ok bool) {
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

// classOf returns the class of a label or of a whole key, given its identity. The class depends on
// the previous interval. For an origin that is new, no previous interval exists, so a repeated use
// in the current interval counts instead.
func (a *admitter) classOf(identity uint64) class {
	if class, hadRow := a.previous.classes[identity]; hadRow {
		return class
	}
	recurredBefore := a.filter.recurredBefore.has(identity)
	recursNow := a.origin.isNew && a.filter.usedOnce.has(identity)
	if recurredBefore || recursNow {
		return classSeen
	}
	return classNew
}

// newHistory returns the history of a label, or of a whole key, that gets its row now. If it recurs in this
// interval, it has its class in the next one from this history: stable if it also recurred in the previous interval,
// recent otherwise.
func (a *admitter) newHistory(class class) history {
	if a.origin.isNew {
		// There was no previous interval. classOf returned classSeen if this interval has used the value before.
		return history{nextClass: classRecent, recurred: class == classSeen}
	}
	if class == classNew {
		return history{nextClass: classRecent}
	}
	return history{nextClass: classStable}
}

// countLost records that the key has lost a label, and counts the key in the given counter.
func (a *admitter) countLost(l span.Label, counter *uint64) {
	a.admission.Collapsed |= setOf(l)
	*counter++
}

// resolveTag returns the ID of a tag. Each tag key has its own budget of tags. A tag that exceeds
// it loses its value; a tag whose key exceeds MaxTagKeys is lost with its key.
func (a *admitter) resolveTag(list span.Label, tag string) labelID {
	if tag == span.Blocked {
		a.rawIdentities = append(a.rawIdentities, uint64(blockedID))
		return a.markBlocked(list, blockedID)
	}
	label := a.newLabel(int32(list), tag)
	a.rawIdentities = append(a.rawIdentities, label.identity)
	keyText, value, _ := strings.Cut(tag, ":")
	keyID, ok := a.resolveTagKey(list, keyText)
	if !ok {
		a.countLost(list, &a.lost[list])
		return a.markBlocked(list, blockedID)
	}
	if value != span.Blocked {
		label.tagKey = keyID
		tags := a.tagsOf(keyID)
		if id, ok := a.idOf(&tags.budget, label); ok {
			return id
		}
		a.countLost(list, &tags.lost)
	}
	return a.resolveBlockedTag(list, keyID, keyText)
}

// resolveTagKey returns the ID of a tag key, which can be pending. A pending tag key gets a budget
// for its tags.
func (a *admitter) resolveTagKey(list span.Label, text string) (labelID, bool) {
	kind, before := tagKeyKind(list), len(a.pending)
	id, ok := a.idOf(&a.origin.budgets[kind], a.newLabel(kind, text))
	if isNew := len(a.pending) > before; isNew {
		key := &a.pending[before]
		if a.newTagKeys == len(a.tagKeys) {
			a.tagKeys = append(a.tagKeys, new(tagKey))
		}
		key.tags = a.tagKeys[a.newTagKeys]
		a.newTagKeys++
		limit := a.config.tagBudget(list, text)
		kept := a.previous.tagKeys[key.identity]
		*key.tags = tagKey{budget: newBudget(limit, kept), limit: limit}
	}
	return id, ok
}

// tagsOf returns the budget for the tags with a tag key.
func (a *admitter) tagsOf(key labelID) *tagKey {
	if key >= pendingID {
		return a.pending[key-pendingID].tags
	}
	return a.labels.list[key].tags
}

// resolveBlockedTag returns the ID of a tag with span.Blocked as its value. It takes no row of a
// budget.
func (a *admitter) resolveBlockedTag(list span.Label, key labelID, text string) labelID {
	from := len(a.scratch)
	a.scratch = append(append(append(a.scratch, text...), ':'), span.Blocked...)
	blocked := a.newLabel(int32(list), stringOf(a.scratch[from:]))
	id, ok := a.findAndMark(&blocked)
	if !ok {
		blocked.tagKey, blocked.isBlocked = key, true
		a.pending = append(a.pending, pendingLabel{label: blocked})
		id = a.lastPendingID()
	}
	return a.markBlocked(list, id)
}

// markBlocked records that a list of tags contains a collapsed tag, whether it was collapsed here or
// in the client. It returns into, the label that replaces the tag.
func (a *admitter) markBlocked(list span.Label, into labelID) labelID {
	a.anyBlocked[list-span.FirstList] = true
	return into
}

// commit assigns IDs to the pending labels, takes the rows of their budgets, and returns the memory
// of the labels. IDs are assigned in the order of pending, so sorted tags stay sorted.
func (a *admitter) commit() (bytes int) {
	next := labelID(len(a.labels.list))
	finalID := func(id labelID) labelID {
		if id < pendingID {
			return id
		}
		return next + id - pendingID
	}
	for i := range a.pending {
		p := &a.pending[i]
		l := p.label
		l.text, l.tagKey = strings.Clone(l.text), finalID(l.tagKey)
		if l.tags != nil {
			tags := *l.tags
			l.tags = &tags
		}
		if p.takesRow() {
			budget := p.budget
			if l.isTag() { // its tag key, committed before, has a copy of the pending budget
				budget = &a.labels.list[l.tagKey].tags.budget
			}
			budget.take(p.share, l.isMask)
		}
		a.labels.add(l)
		bytes += labelBytes(&l)
	}
	for i, id := range a.words {
		a.words[i] = finalID(id)
	}
	return bytes
}

// rowIdentity returns a hash of the resolved key that is the same in every interval. It hashes the
// identities of labels, since label IDs differ between intervals. The order of tags depends on the
// IDs, so the hashes of tags are added.
func (a *admitter) rowIdentity() uint64 {
	hash := mix(a.origin.identity^uint64(a.words[wordFacts]), a.identityOf(a.words[wordStatus]))
	for _, id := range a.words[wordTexts:wordTags] {
		hash = mix(hash, a.identityOf(id))
	}
	sum := uint64(0)
	for tags := range tagLists(a.words) {
		for _, id := range tags {
			sum += mix(0, a.identityOf(id))
		}
	}
	return mix(hash, sum)
}

// rawIdentity returns the rowIdentity that the key would have if each of its labels had a row.
func (a *admitter) rawIdentity() uint64 {
	const texts = 1 + int(span.FirstList) // the status and the texts
	hash, sum := a.origin.identity^uint64(a.words[wordFacts]), uint64(0)
	for _, identity := range a.rawIdentities[:texts] {
		hash = mix(hash, identity)
	}
	for _, identity := range a.rawIdentities[texts:] {
		sum += mix(0, identity)
	}
	return mix(hash, sum)
}

// identityOf returns the identity of a label, given its ID or the ID of a pending label.
func (a *admitter) identityOf(id labelID) uint64 {
	switch {
	case id < firstID:
		return uint64(id)
	case id < pendingID:
		return a.labels.list[id].identity
	}
	return a.pending[id-pendingID].identity
}

// stringOf converts bytes to a string without copying them.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
