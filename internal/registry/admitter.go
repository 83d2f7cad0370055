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
	originID       OriginID
	origin         *origin
	encodedKey     []uint32       // see wordOrigin
	tagsMayRepeat  [lists]bool    // by list of tags, whether it contains a collapsed tag
	pending        []pendingLabel // labels of the key that are new in this interval
	sentIdentities []uint64       // identities of the key's labels as the client sent them
	masks          []sentMask     // masks of the key's labels, whether used or not
	rejected       []uint64       // identities of the key and its labels, as far as they got no row
	lastRejected   rejectedLabel  // last label of the key that got no row
	spans          uint64         // number of spans with the key that the call stands for
	admission      Admission      // result so far
	scratch        []byte         // texts built for the key; overwritten by the next one
	tagValues      []*tagValues   // memory for pending tag keys, reused by the next key
	tagValuesInUse int            // number of tagValues in use
}

// pendingLabel is a label of the current key that is new in this interval. If the key is admitted,
// the label gets an ID and takes a row of its budget.
type pendingLabel struct {
	label
	budget *budget // nil for a collapsed tag, which takes no row
	share  class   // share of the budget that the row is taken from
}

// isCharged reports whether the label is counted in a budget, a limit on distinct values.
func (p *pendingLabel) isCharged() bool { return p.budget != nil }

// admit returns the row, a set of counters, in which the spans of a key are counted. A key that is new in
// this interval gets a row of its own if the limits allow it. Otherwise its spans are counted in a row
// without labels.
func (a *admitter) admit(id OriginID, key *span.Key) Admission {
	a.reset(id)
	a.encodeKey(key)
	identity := a.rowIdentity()
	row, isKnown := a.rows.find(a.encodedKey, identity)
	if isKnown {
		a.rows.byID[row].recurred = true
		return a.admitToRow(row)
	}
	class := a.classOf(identity)
	source, hasFreeRow := a.rowBudget.find(a.origin, class)
	if !hasFreeRow {
		return a.admitToOverflowRow(identity)
	}
	row = a.addRow(identity, class, source)
	return a.admitToRow(row)
}

// addRow adds a row for the current key, and the labels of the key that are new in this interval. identity
// is the hash of the key. The row is charged to source.
func (a *admitter) addRow(identity uint64, class class, source rowSource) KeyID {
	labelBytes := a.addPendingLabels()
	a.rowBudget.take(a.origin, source, labelBytes+rowBytes(a.encodedKey))
	history := a.newHistory(class)
	if source.fromReserve {
		history.nextClass = classStable // the row is kept, so an origin can grow up to its fair share
	}
	entry := KeyEntry{Origin: a.originID, Key: a.labels.keyOf(a.encodedKey)}
	return a.rows.add(a.encodedKey, identity, history, entry)
}

// reset prepares the admitter for a key of the given origin.
func (a *admitter) reset(id OriginID) {
	a.originID = id
	a.origin = &a.origins.byID[id]
	a.encodedKey = a.encodedKey[:0]
	a.tagsMayRepeat = [lists]bool{}
	a.pending = a.pending[:0]
	a.sentIdentities = a.sentIdentities[:0]
	a.masks = a.masks[:0]
	a.rejected = a.rejected[:0]
	a.admission = Admission{}
	a.scratch = a.scratch[:0]
	a.tagValuesInUse = 0
}

// forgetTexts drops all references to the texts of the last key, which are in the memory of a message.
func (a *admitter) forgetTexts() {
	clear(a.pending)
	a.lastRejected = rejectedLabel{}
}

// admitToRow returns the admission of the current key to the given row. It counts the labels that were
// replaced by a mask. A filter records the values that got no row, so that they precede unknown values
// in the next interval if they recur.
func (a *admitter) admitToRow(row KeyID) Admission {
	a.admission.ID = row
	a.admission.Hash = partitionHash(a.rows.byID[row].identity)
	a.rejectSentKeyIfReplaced()
	if a.admission.Collapsed != 0 {
		a.measureLostKey(a.rejected[len(a.rejected)-1])
	}
	a.admission.AllRecur = a.filter.recordUses(a.rejected)
	for _, l := range maskedLabels {
		if a.admission.Masked.Has(l) {
			a.countKey(&a.masked[l])
		}
	}
	return a.admission
}

// rejectSentKeyIfReplaced appends the hash of the key, as the client sent it, to a.rejected, if at least
// one of its labels was replaced.
func (a *admitter) rejectSentKeyIfReplaced() {
	if !a.admission.IsUnchanged() {
		a.rejected = append(a.rejected, a.identityAsSent())
	}
}

// partitionHash returns the hash that decides which partition, a group of rows, a row
// belongs to. Like the identity of the row, it is the same in every interval.
func partitionHash(identity uint64) uint32 { return uint32(identity>>32 ^ identity) }

// admitToOverflowRow returns the row, a set of counters, for a key that gets no row of its own: one without
// labels. It counts the new labels of the key as lost. It records them and the key in the filter, so that
// they take precedence in the next interval if they recur.
func (a *admitter) admitToOverflowRow(identity uint64) Admission {
	a.rejected = append(a.rejected, identity)
	a.rejectSentKeyIfReplaced()
	a.measureLostKey(a.rejected[len(a.rejected)-1])
	for i := range a.pending {
		newLabel := &a.pending[i]
		if newLabel.isCharged() {
			a.rejected = append(a.rejected, newLabel.identity)
			a.countKey(a.lostCounter(&newLabel.label))
		}
	}
	admission := a.overflowRow(a.originID)
	admission.AllRecur = a.filter.recordUses(a.rejected)
	return admission
}

// lostCounter returns the counter of keys that have lost the label l, because it has too many different
// values. There is one counter for each kind of label, and for tags one for each tag key.
func (a *admitter) lostCounter(l *label) *uint64 {
	if l.isTag() {
		return &a.tagValuesOf(l.tagKey).lost
	}
	return &a.lost[l.scope.kind]
}

// encodeKey encodes a key as a list of numbers in a.encodedKey: the ID of the origin, the process that
// sent the key; one number for each label; and for each list of tags, its length and the IDs of the
// tags. The tags are sorted, so keys that differ only in the order of their tags are equal.
func (a *admitter) encodeKey(k *span.Key) {
	status := a.resolveStatus(k.HTTPStatus)
	flags := uint32(k.Facts()) // whether the spans are trace roots, and synthetic
	a.encodedKey = append(a.encodedKey, uint32(a.originID), status, flags)
	for l := range span.FirstList {
		a.encodedKey = append(a.encodedKey, a.resolveText(l, *k.Text(l)))
	}
	for list := span.FirstList; list < span.EndOfLists; list++ {
		tags := *k.Tags(list)
		a.encodedKey = append(a.encodedKey, uint32(len(tags)))
		for _, tag := range tags {
			a.encodedKey = append(a.encodedKey, a.resolveTag(list, tag))
		}
	}
	a.encodedKey = orderTags(a.encodedKey, &a.tagsMayRepeat)
}

// resolveStatus returns the ID of an HTTP status code. The number of different status codes is limited,
// as for other labels, because clients can send any number. A status code beyond the limit becomes
// absentID.
func (a *admitter) resolveStatus(status uint32) labelID {
	if status == 0 {
		return a.resolveText(span.LabelHTTPStatus, "")
	}
	textStart := len(a.scratch)
	a.scratch = strconv.AppendUint(a.scratch, uint64(status), 10)
	text := stringOf(a.scratch[textStart:])
	id := a.resolveText(span.LabelHTTPStatus, text)
	if id == blockedID {
		return absentID
	}
	return id
}

// resolveText returns the ID of the text of a label, or of the mask that replaces the text. It returns
// absentID if the text is empty. It returns blockedID if the origin can have no more distinct values of
// the label, or if the client has replaced the text for such a reason.
func (a *admitter) resolveText(l span.Label, text string) labelID {
	switch text {
	case "":
		a.recordSentID(absentID)
		return absentID
	case span.Blocked: // replaced by the client, which has limits as well
		a.recordSentID(blockedID)
		return blockedID
	}
	sent := a.newLabel(int32(l), text)
	a.recordSentLabel(sent.identity)
	id, ok := a.idOfTextOrMask(l, sent)
	if !ok {
		a.countLost(l, &a.lost[l])
		a.measureLostText(l)
		return blockedID
	}
	return id
}

// recordSentLabel records the hash of a label as the client sent it, before anything is replaced.
func (a *admitter) recordSentLabel(identity uint64) {
	a.sentIdentities = append(a.sentIdentities, identity)
}

// recordSentID is recordSentLabel for a label without a hash, which has the same ID in every interval.
func (a *admitter) recordSentID(id labelID) { a.recordSentLabel(uint64(id)) }

// idOfTextOrMask returns the ID of a label that a client sent. Depending on Config.Masking, the ID can be
// that of the label's mask, a text with placeholders such as "GET /users/{id}". It returns false if the
// origin can have no more distinct values of the label.
func (a *admitter) idOfTextOrMask(l span.Label, sent label) (id labelID, ok bool) {
	budget := &a.origin.budgets[l]
	switch a.config.Masking {
	case MaskAlways:
		return a.idOfMask(budget, l, sent)
	case MaskNever:
		return a.idOf(budget, sent)
	default:
		return a.idOfTextElseMask(budget, l, sent)
	}
}

// idOfTextElseMask returns the ID of a label that a client sent. If the budget, a limit on the number of
// distinct values, is used up, it returns the ID of the label's mask. It returns false if the label has no
// mask, or if there are too many masks.
func (a *admitter) idOfTextElseMask(budget *budget, l span.Label, sent label) (id labelID, ok bool) {
	id, ok = a.idOf(budget, sent)
	if ok {
		return id, true
	}
	masked, hasMask := a.maskOf(l, sent.text)
	if !hasMask {
		return absentID, false
	}
	masked.isMask = true
	id, ok = a.idOf(budget, masked)
	if ok {
		a.admission.Masked |= setOf(l)
	}
	return id, ok
}

// idOfMask returns the ID of the mask of a label, a text with placeholders such as "GET /users/{id}". If
// the label has no mask, it returns the ID of the label itself. It returns false if the budget, a limit
// on the number of distinct values, is used up.
func (a *admitter) idOfMask(budget *budget, l span.Label, sent label) (id labelID, ok bool) {
	masked, hasMask := a.maskOf(l, sent.text)
	if !hasMask {
		return a.idOf(budget, sent)
	}
	a.rejected = append(a.rejected, sent.identity) // the text as sent is not counted
	a.admission.Masked |= setOf(l)
	return a.idOf(budget, masked)
}

// maxMaskBytes is the maximum length of a mask that is longer than its text.
const maxMaskBytes = 100

// maskOf returns a label whose text is a mask: the mask of "GET /users/17" is "GET /users/{id}". It returns
// false if labels of this kind are never masked, if there is nothing to replace in the text, or if the
// mask is too long.
func (a *admitter) maskOf(l span.Label, text string) (masked label, ok bool) {
	if !isMaskable(l) {
		return label{}, false
	}
	maskStart := len(a.scratch)
	scratch, hasMask := mask.Append(a.scratch, text)
	a.scratch = scratch
	if !hasMask {
		return label{}, false
	}
	maskText := stringOf(a.scratch[maskStart:])
	isTooLongForLabel := len(maskText) > l.MaxBytes()
	isTooLongForText := len(maskText) > len(text) && len(maskText) > maxMaskBytes
	if isTooLongForLabel || isTooLongForText {
		return label{}, false
	}
	masked = a.newLabel(int32(l), maskText)
	a.masks = append(a.masks, sentMask{position: len(a.sentIdentities) - 1, identity: masked.identity})
	return masked, true
}

// newLabel returns a label of the current origin. The label has no ID yet.
func (a *admitter) newLabel(kind int32, text string) label {
	name := labelName{scope{a.originID, kind}, text}
	return label{labelName: name, identity: a.origin.identityOf(name)}
}

// idOf returns the ID of a label. It adds a label that is new in this interval to a.pending, and returns a
// temporary ID for it. If the budget, a limit on distinct values, is used up, idOf adds the label to
// a.rejected instead, and returns false.
func (a *admitter) idOf(budget *budget, l label) (id labelID, ok bool) {
	id, isKnown := a.findAndRecordUse(&l)
	if isKnown {
		if !l.isMask {
			a.countAsText(budget, id) // a client sent the text itself, so it is not only a mask
		}
		return id, true
	}
	class := a.classOf(l.identity)
	share, isWithinBudget := budget.find(class, l.isMask, a.pendingIn)
	if !isWithinBudget {
		a.rejected = append(a.rejected, l.identity)
		a.lastRejected = rejectedLabel{l.identity, l.text}
		return absentID, false
	}
	l.history = a.newHistory(class)
	a.pending = append(a.pending, pendingLabel{label: l, budget: budget, share: share})
	return a.lastPendingID(), true
}

// countAsText records that a client has sent the text of a label itself. If the text was only used as a
// mask before, to replace several similar texts, it no longer counts against the limit for masks.
func (a *admitter) countAsText(budget *budget, id labelID) {
	isPending := id >= pendingID
	if isPending || !a.labels.byID[id].isMask {
		return
	}
	a.labels.byID[id].isMask = false
	budget.masks--
}

// lastPendingID returns the ID of the last pending label.
func (a *admitter) lastPendingID() labelID { return pendingID + labelID(len(a.pending)-1) }

// pendingIn returns how many new values of the current key will be charged to a share, one part of a
// budget. A budget limits the number of distinct values. It does not include the new values of a key
// before the whole key is admitted.
func (a *admitter) pendingIn(b *budget, share class) int {
	count := 0
	for i := range a.pending {
		if a.pending[i].budget == b && a.pending[i].share == share {
			count++
		}
	}
	return count
}

// findAndRecordUse returns the ID of a label, or false if the label is new in this interval. If an earlier
// key of this interval has the label, too, it marks the label as recurring. If only the current key has it,
// the ID is temporary.
func (a *admitter) findAndRecordUse(l *label) (id labelID, ok bool) {
	id, ok = a.labels.find(l.labelName, l.identity)
	if ok {
		a.labels.byID[id].recurred = true
		return id, true
	}
	return a.findPending(l.labelName)
}

// findPending returns the preliminary ID of a label that only the current key has used, or false if the
// current key has not used it.
func (a *admitter) findPending(name labelName) (id labelID, ok bool) {
	for i := range a.pending {
		if a.pending[i].labelName == name {
			return pendingID + labelID(i), true
		}
	}
	return absentID, false
}

// classOf returns the class of a label, or of a whole key: whether it was used at least twice in the previous
// interval. identity is its hash. If the origin has no previous interval, a second use in this interval counts
// instead.
func (a *admitter) classOf(identity uint64) class {
	class, isKnown := a.previous.classes[identity]
	if isKnown {
		return class
	}
	recurredBefore := a.filter.recurredBefore.has(identity)
	recursNow := a.origin.isNew && a.filter.usedOnce.has(identity)
	if recurredBefore || recursNow {
		return classSeen
	}
	return classNew
}

// newHistory returns the history of a label, or of a whole key, that gets a row. If it recurs in this
// interval, its class in the next one is classStable if it recurred in the previous interval, too, and
// classRecent otherwise.
func (a *admitter) newHistory(class class) history {
	recurredBefore := !a.origin.isNew && class != classNew
	if recurredBefore {
		return history{nextClass: classStable}
	}
	recurs := a.origin.isNew && class == classSeen // a new origin has no previous interval: this is the second use
	return history{nextClass: classRecent, recurred: recurs}
}

// countLost records that the key has lost a label, and counts the key in the given counter.
func (a *admitter) countLost(l span.Label, counter *uint64) {
	a.admission.Collapsed |= setOf(l)
	a.countKey(counter)
}

// countKey adds the current key to a counter of keys, unless the call of CountSpans is for a key that Admit has
// counted already.
func (a *admitter) countKey(counter *uint64) {
	isSample := a.spans > 1
	if !isSample {
		*counter++
	}
}

// resolveTag returns the ID of a tag "key:value". If the tag key has too many values in this interval, the
// tag becomes "key:tracer_blocked_value". If the origin has too many tag keys, the whole tag becomes
// "tracer_blocked_value". Either replacement is counted.
func (a *admitter) resolveTag(list span.Label, tag string) labelID {
	if tag == span.Blocked { // replaced by the client
		a.recordSentID(blockedID)
		a.setTagsMayRepeat(list)
		return blockedID
	}
	sent := a.newLabel(int32(list), tag)
	a.recordSentLabel(sent.identity)
	keyText, value, _ := strings.Cut(tag, ":")
	keyID, hasKey := a.resolveTagKey(list, keyText)
	if !hasKey {
		a.countLost(list, &a.lost[list])
		a.setTagsMayRepeat(list)
		return blockedID
	}
	isBlockedByClient := value == span.Blocked
	if !isBlockedByClient {
		sent.tagKey = keyID
		values := a.tagValuesOf(keyID)
		id, ok := a.idOf(&values.budget, sent)
		if ok {
			return id
		}
		a.countLost(list, &values.lost)
		a.measureLostTag(values, keyText, value)
	}
	a.setTagsMayRepeat(list)
	return a.resolveBlockedTag(list, keyID, keyText)
}

// resolveTagKey returns the ID of a tag key, such as "region" in the tag "region:eu". It returns false
// if there are too many tag keys. For a tag key that is new in this interval, it sets the limit on the
// number of values.
func (a *admitter) resolveTagKey(list span.Label, text string) (id labelID, ok bool) {
	kind := tagKeyKind(list)
	tagKey := a.newLabel(kind, text)
	id, ok = a.idOf(&a.origin.budgets[kind], tagKey)
	if !ok {
		return absentID, false
	}
	isNew := a.tagValuesOf(id) == nil
	if isNew {
		limit := a.config.tagBudget(list, text)
		kept := a.previous.keptTags[tagKey.identity]
		a.pending[id-pendingID].values = a.newTagValues(limit, kept)
	}
	return id, true
}

// newTagValues returns the budget for a new tag key. It is valid until the next key is admitted. limit is
// the maximum number of values, and kept is the number of values that keep their rows.
func (a *admitter) newTagValues(limit int, kept keptRows) *tagValues {
	if a.tagValuesInUse == len(a.tagValues) {
		a.tagValues = append(a.tagValues, new(tagValues))
	}
	values := a.tagValues[a.tagValuesInUse]
	a.tagValuesInUse++
	*values = tagValues{budget: newBudget(limit, kept), limit: limit}
	return values
}

// tagValuesOf returns the budget for the values of a tag key, given the ID of the tag key. It returns nil
// if the tag key has no budget yet.
func (a *admitter) tagValuesOf(id labelID) *tagValues {
	if id >= pendingID {
		return a.pending[id-pendingID].values
	}
	return a.labels.byID[id].values
}

// resolveBlockedTag returns the ID of the tag "key:tracer_blocked_value", which replaces the tags of a tag
// key that has too many values. keyID and keyText are the ID and the text of the tag key. The replacement
// itself is not counted as a value.
func (a *admitter) resolveBlockedTag(list span.Label, keyID labelID, keyText string) labelID {
	textStart := len(a.scratch)
	a.scratch = append(a.scratch, keyText...)
	a.scratch = append(a.scratch, ':')
	a.scratch = append(a.scratch, span.Blocked...)
	text := stringOf(a.scratch[textStart:])
	blocked := a.newLabel(int32(list), text)
	id, isKnown := a.findAndRecordUse(&blocked)
	if isKnown {
		return id
	}
	blocked.tagKey = keyID
	blocked.isBlocked = true
	a.pending = append(a.pending, pendingLabel{label: blocked})
	return a.lastPendingID()
}

// setTagsMayRepeat records that a list can contain the same tag twice, because the daemon or the client
// replaced the value of a tag.
func (a *admitter) setTagsMayRepeat(list span.Label) { a.tagsMayRepeat[list-span.FirstList] = true }

// addPendingLabels registers the labels in a.pending, which are new in this interval, and returns their
// memory in bytes. It replaces their temporary IDs in a.encodedKey by final ones. The final IDs have the
// same order, so sorted tags stay sorted.
func (a *admitter) addPendingLabels() (bytes int) {
	firstNewID := labelID(len(a.labels.byID))
	finalID := func(id labelID) labelID {
		if id < pendingID {
			return id
		}
		return firstNewID + (id - pendingID)
	}
	for i := range a.pending {
		pending := &a.pending[i]
		added := pending.label
		added.text = strings.Clone(added.text)
		added.tagKey = finalID(added.tagKey)
		if added.values != nil {
			values := *added.values
			added.values = &values
		}
		if pending.isCharged() {
			a.finalBudget(pending.budget, &added).take(pending.share, added.isMask)
		}
		a.labels.add(added)
		bytes += labelBytes(&added)
	}
	for i, id := range a.encodedKey {
		a.encodedKey[i] = finalID(id)
	}
	return bytes
}

// finalBudget returns the budget, a limit on different values, from which a new label takes a row. The
// budget for a tag belongs to its tag key. For a tag key that is new, too, addPendingLabels has copied
// the budget.
func (a *admitter) finalBudget(b *budget, added *label) *budget {
	if added.isTag() {
		return &a.labels.byID[added.tagKey].values.budget
	}
	return b
}

// rowIdentity returns a hash of the current key that is the same in every interval. It is made of the
// hashes of the labels, because their IDs differ between intervals. The hashes of tags are added up, so
// the order of the tags does not matter.
func (a *admitter) rowIdentity() uint64 {
	hash := a.origin.identity ^ uint64(a.encodedKey[wordFacts])
	hash = mix(hash, a.identityOf(a.encodedKey[wordStatus]))
	for _, id := range a.encodedKey[wordTexts:wordTags] {
		hash = mix(hash, a.identityOf(id))
	}
	sumOfTags := uint64(0)
	for tags := range tagLists(a.encodedKey) {
		for _, id := range tags {
			sumOfTags += tagHash(a.identityOf(id))
		}
	}
	return mix(hash, sumOfTags)
}

// tagHash returns the number that a tag adds to the hash of a key, given the hash of the tag. The hash is
// mixed first, so that different sets of tags are unlikely to have the same sum.
func tagHash(identity uint64) uint64 { return mix(0, identity) }

// identityAsSent returns the hash that rowIdentity would return if no label had been replaced.
func (a *admitter) identityAsSent() uint64 {
	const firstTag = 1 + int(span.FirstList) // after the status and the labels that are single texts
	hash := a.origin.identity ^ uint64(a.encodedKey[wordFacts])
	for _, identity := range a.sentIdentities[:firstTag] {
		hash = mix(hash, identity)
	}
	sumOfTags := uint64(0)
	for _, identity := range a.sentIdentities[firstTag:] {
		sumOfTags += tagHash(identity)
	}
	return mix(hash, sumOfTags)
}

// identityOf returns the identity of a label, given its ID. The label can be one of a.pending.
func (a *admitter) identityOf(id labelID) uint64 {
	switch {
	case id < firstID:
		return uint64(id)
	case id < pendingID:
		return a.labels.byID[id].identity
	default:
		return a.pending[id-pendingID].identity
	}
}

// stringOf converts bytes to a string without copying them.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
