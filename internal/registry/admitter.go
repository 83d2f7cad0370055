package registry

import (
	"slices"
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
	spans          uint64 // number of spans with the key that the call stands for
	encodedKey     encodedKey
	pending        []pendingLabel // labels of the key that are new in this interval
	sentTexts      []uint64       // hashes of the key's status and texts as the client sent them
	sentTags       []uint64       // hashes of the key's tags as the client sent them
	masks          []sentMask     // masks of the key's labels, whether used or not
	withoutRow     []uint64       // hashes of labels and keys that got no row; filter records their use
	lastLost       lostLabel      // last label of the key that got no row
	admission      Admission      // result so far
	scratch        []byte         // texts built for the key; overwritten by the next one
	tagValues      []*tagValues   // memory for the budgets of new tag keys, reused by the next key
	tagValuesInUse int            // number of elements of tagValues that the current key uses
}

// pendingLabel is a label of the current key that is new in this interval. If the key gets a row, the
// label gets an ID. Unless labelValue.isBlocked is set, the label then takes one row of a share, a part
// of a budget.
type pendingLabel struct {
	labelValue
	budget *budget     // nil if isBlocked is set
	share  rowPriority // index in budget.shares; unused if isBlocked is set
}

// admit returns the row, a set of counters, in which the spans of a key are counted. A key that is new in
// this interval gets a row of its own if the limits allow it. Otherwise its spans are counted in a row
// without labels. spans is the number of spans for which admit is called.
func (a *admitter) admit(id OriginID, key *span.Key, spans uint64) Admission {
	a.reset(id, spans)
	a.encodeKey(key)
	hash := a.keyHash()
	row, isKnown := a.rows.find(a.encodedKey, hash)
	if isKnown {
		a.rows.byID[row].recurred = true
		return a.admitToRow(row)
	}
	priority := a.priorityOf(hash) // some rows are reserved for keys that were used in the previous interval
	source, hasFreeRow := a.rowBudget.findFreeRow(a.origin, priority)
	if !hasFreeRow {
		return a.admitToOverflowRow(hash, key.Measure)
	}
	row = a.addRow(hash, priority, source)
	return a.admitToRow(row)
}

// addRow adds a row, a set of counters, for the current key, and returns the ID of the row. It also adds the
// labels of the key that are new in this interval. hash is the hash of the key, and source the limit that
// the row counts against.
func (a *admitter) addRow(hash uint64, priority rowPriority, source rowSource) KeyID {
	labelBytes := a.addPendingLabels()
	a.rowBudget.take(a.origin, source, labelBytes+rowBytes(a.encodedKey))
	history := a.newHistory(priority)
	if source.fromReserve { // the reserve lets a small origin grow, so its rows are kept first
		history.nextPriority = priorityStable
	}
	entry := KeyEntry{Origin: a.originID, Key: a.labels.keyOf(a.encodedKey)}
	return a.rows.add(a.encodedKey, hash, history, entry)
}

// reset prepares the admitter for a key of the given origin.
func (a *admitter) reset(id OriginID, spans uint64) {
	a.originID = id
	a.origin = &a.origins.byID[id]
	a.spans = spans
	a.encodedKey = a.encodedKey[:0]
	a.pending = a.pending[:0]
	a.sentTexts = a.sentTexts[:0]
	a.sentTags = a.sentTags[:0]
	a.masks = a.masks[:0]
	a.withoutRow = a.withoutRow[:0]
	a.admission = Admission{}
	a.scratch = a.scratch[:0]
	a.tagValuesInUse = 0
}

// forgetTexts drops all references to the texts of the last key, which are in the memory of a message.
func (a *admitter) forgetTexts() {
	clear(a.pending)
	a.lastLost = lostLabel{}
}

// admitToRow returns the result for the current key: its spans are counted in the given row. If labels of
// the key were replaced, admitToRow also records this use of the original values, because values that are
// used again get rows first in the next interval.
func (a *admitter) admitToRow(row KeyID) Admission {
	a.admission.ID = row
	a.admission.Hash = partitionHash(a.rows.byID[row].hash)
	if a.admission.IsUnchanged() {
		a.admission.ReplacedValuesRecur = true // there are no replaced values
		return a.admission
	}
	sentKeyHash := a.sentKeyHash()
	if a.admission.Collapsed != 0 {
		a.measureLostKey(sentKeyHash)
	}
	a.countMaskedLabels()
	a.withoutRow = append(a.withoutRow, sentKeyHash)
	a.admission.ReplacedValuesRecur = a.filter.recordUses(a.withoutRow)
	return a.admission
}

// countMaskedLabels counts the key for each of its labels that was replaced by a mask, a text with
// placeholders.
func (a *admitter) countMaskedLabels() {
	for _, l := range maskedLabels {
		if a.admission.Masked.Has(l) {
			a.countKey(&a.masked[l])
		}
	}
}

// partitionHash returns the hash that selects the partition of a key, a part of the key space. It is the same
// in every interval. hash is the 64-bit hash of the key.
func partitionHash(hash uint64) uint32 {
	upper, lower := uint32(hash>>32), uint32(hash)
	return upper ^ lower
}

// admitToOverflowRow returns the result for a key that gets no counters of its own: its spans are counted
// without labels. It also records this use of the key and of its new labels, because values that are used
// again get counters first in the next interval. hash is the hash of the key.
func (a *admitter) admitToOverflowRow(hash uint64, measure span.Measure) Admission {
	sentKeyHash := hash
	if !a.admission.IsUnchanged() {
		sentKeyHash = a.sentKeyHash()
	}
	a.measureLostKey(sentKeyHash)
	a.withoutRow = append(a.withoutRow, hash, sentKeyHash)
	a.loseNewLabels()
	admission := a.overflowRow(a.originID, measure)
	admission.ReplacedValuesRecur = a.filter.recordUses(a.withoutRow)
	return admission
}

// loseNewLabels records that the labels that are new in this interval get no rows, because their key got none.
func (a *admitter) loseNewLabels() {
	for i := range a.pending {
		newLabel := &a.pending[i]
		if !newLabel.isBlocked {
			a.withoutRow = append(a.withoutRow, newLabel.hash)
			a.countKey(a.lostCounter(&newLabel.labelValue))
		}
	}
}

// lostCounter returns the counter of keys that have lost the label l, because it has too many different
// values. There is one counter for each kind of label, and for tags one for each tag key.
func (a *admitter) lostCounter(l *labelValue) *uint64 {
	if l.isTag() {
		return &a.tagValuesOf(l.tagKey).lostCount
	}
	return &a.lostCounts[l.scope.kind]
}

// encodeKey encodes a key as a list of numbers in a.encodedKey: the IDs of the origin and of the HTTP status,
// flags, the ID of each text, and the lists of tags.
func (a *admitter) encodeKey(k *span.Key) {
	status := a.resolveStatus(k.HTTPStatus)
	facts := k.Facts() // whether the spans are trace roots, whether they are synthetic, and the measure
	a.encodedKey = append(a.encodedKey, uint32(a.originID), status, facts)
	for l := range span.EndOfTexts { // the labels that are single texts
		a.encodedKey = append(a.encodedKey, a.resolveText(l, *k.Text(l)))
	}
	for list := span.FirstList; list < span.EndOfLists; list++ {
		a.encodeTags(list, *k.Tags(list))
	}
}

// encodeTags appends tags to a.encodedKey: the number of tags, and their IDs. The IDs are sorted, so keys that
// differ only in the order of their tags are equal. If several tags were replaced by the same tag, a.encodedKey
// contains that tag once. list is the label that the tags belong to: span.LabelPeerTag or
// span.LabelAdditionalTag.
func (a *admitter) encodeTags(list span.Label, tags []string) {
	lengthIndex := len(a.encodedKey)
	a.encodedKey = append(a.encodedKey, 0) // the number of tags, which is set below
	hasReplacedTag := false
	for _, tag := range tags {
		id, isReplaced := a.resolveTag(list, tag)
		a.encodedKey = append(a.encodedKey, id)
		hasReplacedTag = hasReplacedTag || isReplaced
	}
	ids := a.encodedKey[lengthIndex+1:]
	slices.Sort(ids)
	if hasReplacedTag {
		ids = slices.Compact(ids)
	}
	a.encodedKey[lengthIndex] = uint32(len(ids))
	a.encodedKey = a.encodedKey[:lengthIndex+1+len(ids)]
}

// resolveStatus returns the ID of an HTTP status code. The number of different status codes is limited,
// as for other labels, because clients can send any number. A status code beyond the limit becomes
// absentID.
func (a *admitter) resolveStatus(status uint32) labelID {
	if status == 0 {
		return a.resolveText(span.LabelHTTPStatus, "")
	}
	start := len(a.scratch)
	a.scratch = strconv.AppendUint(a.scratch, uint64(status), 10)
	text := stringOf(a.scratch[start:])
	id := a.resolveText(span.LabelHTTPStatus, text)
	if id == blockedID { // tracer_blocked_value is not a number
		return absentID
	}
	return id
}

// resolveText returns the ID of the text of a label, or of a mask such as "GET /users/{id}" that replaces
// the text. It returns absentID if the text is empty. It returns blockedID, the ID of
// "tracer_blocked_value", if the client sent that text, or if the label has too many different values.
func (a *admitter) resolveText(l span.Label, text string) labelID {
	switch text {
	case "":
		a.sentTexts = append(a.sentTexts, hashOfAbsent)
		return absentID
	case span.Blocked: // replaced by the client, which has limits as well
		a.sentTexts = append(a.sentTexts, hashOfBlocked)
		return blockedID
	}
	sent := a.newLabel(l, text)
	a.sentTexts = append(a.sentTexts, sent.hash)
	id, ok := a.idOfTextOrMask(l, sent)
	if !ok {
		a.countLost(l, &a.lostCounts[l])
		a.measureLostText(l)
		return blockedID
	}
	return id
}

// idOfTextOrMask returns the ID of a value of the label l. If Config.Masking requires it, the ID is that of
// the value's mask, a text with placeholders such as "GET /users/{id}". It returns false if the label has
// too many different values.
func (a *admitter) idOfTextOrMask(l span.Label, sent labelValue) (id labelID, ok bool) {
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

// idOfTextElseMask returns the ID of a value of the label l. If the budget, a limit on different values, is
// used up, it returns the ID of the value's mask, a text with placeholders such as "GET /users/{id}". It
// returns false if the value has no mask, or if there are too many masks.
func (a *admitter) idOfTextElseMask(budget *budget, l span.Label, sent labelValue) (id labelID, ok bool) {
	id, ok = a.idOf(budget, sent)
	if ok {
		return id, true
	}
	masked, hasMask := a.maskOf(l, sent.text)
	if !hasMask {
		return absentID, false
	}
	a.recordMask(masked.hash)
	masked.isMask = true
	id, ok = a.idOf(budget, masked)
	if ok {
		a.admission.Masked |= setOf(l)
	}
	return id, ok
}

// idOfMask returns the ID of the mask that replaces a value of the label l: "GET /users/{id}" replaces
// "GET /users/17". If the value has no mask, it returns the ID of the value itself. It returns false
// if the budget, a limit on different values, is used up.
func (a *admitter) idOfMask(budget *budget, l span.Label, sent labelValue) (id labelID, ok bool) {
	masked, hasMask := a.maskOf(l, sent.text)
	if !hasMask {
		return a.idOf(budget, sent)
	}
	a.recordMask(masked.hash)
	a.admission.Masked |= setOf(l)
	a.withoutRow = append(a.withoutRow, sent.hash) // only the mask can get a row
	return a.idOf(budget, masked)
}

// maxMaskBytes is the maximum length of a mask that is longer than its text.
const maxMaskBytes = 100

// maskOf returns the value of the label l that replaces a text: "GET /users/{id}" replaces "GET /users/17".
// It returns false if values of the label are never replaced, if the text contains nothing to replace, or if
// the result is too long.
func (a *admitter) maskOf(l span.Label, text string) (masked labelValue, ok bool) {
	if !isMaskable(l) {
		return labelValue{}, false
	}
	maskStart := len(a.scratch)
	scratch, hasMask := mask.Append(a.scratch, text)
	a.scratch = scratch
	if !hasMask {
		return labelValue{}, false
	}
	maskText := stringOf(a.scratch[maskStart:])
	isTooLongForLabel := len(maskText) > l.MaxBytes()
	isTooLongForText := len(maskText) > len(text) && len(maskText) > maxMaskBytes
	if isTooLongForLabel || isTooLongForText {
		return labelValue{}, false
	}
	return a.newLabel(l, maskText), true
}

// recordMask records the hash of the mask of the label value that was recorded last.
func (a *admitter) recordMask(hash uint64) {
	a.masks = append(a.masks, sentMask{position: len(a.sentTexts) - 1, hash: hash})
}

// newLabel returns a value of the label l, or a tag if l is a list of tags, for the current origin. It has no
// ID yet.
func (a *admitter) newLabel(l span.Label, text string) labelValue {
	return a.newLabelOfKind(scopeKind(l), text)
}

// newLabelOfKind returns a label value, a tag or a tag key of the current origin, as kind says. It has no ID yet.
func (a *admitter) newLabelOfKind(kind scopeKind, text string) labelValue {
	name := labelName{scope{a.originID, kind}, text}
	return labelValue{labelName: name, hash: a.origin.hashOf(name)}
}

// idOf returns the ID of a label value. For a value that is new in this interval, the ID is temporary until
// the current key is admitted. It returns false if the value is new and the budget, a limit on different
// values, is used up.
func (a *admitter) idOf(budget *budget, value labelValue) (id labelID, ok bool) {
	id, isKnown := a.findAndRecordUse(&value)
	if !isKnown {
		return a.addPending(budget, value)
	}
	if !value.isMask {
		a.countAsText(budget, id)
	}
	return id, true
}

// addPending adds a label value that is new in this interval to a.pending, the new values of the current key.
// It returns a temporary ID. It returns false if the budget has no free row for the value. A budget limits the
// different values of a label: each of them takes one row.
func (a *admitter) addPending(budget *budget, value labelValue) (id labelID, ok bool) {
	priority := a.priorityOf(value.hash) // some rows are reserved for values that were used in the previous interval
	share, hasFreeRow := budget.findShareWithFreeRow(priority, value.isMask, a.pending)
	if !hasFreeRow {
		a.withoutRow = append(a.withoutRow, value.hash)
		a.lastLost = lostLabel{value.hash, value.text}
		return absentID, false
	}
	value.history = a.newHistory(priority)
	a.pending = append(a.pending, pendingLabel{labelValue: value, budget: budget, share: share})
	return a.lastPendingID(), true
}

// countAsText records that a client has sent the text with the given ID. If the text was only used to replace
// similar texts so far, as "GET /users/{id}" does, it no longer counts against the limit on such texts.
func (a *admitter) countAsText(budget *budget, id labelID) {
	if isPending(id) {
		return
	}
	value := &a.labels.byID[id]
	if value.isMask {
		value.isMask = false
		budget.masks--
	}
}

// lastPendingID returns the ID of the last pending label.
func (a *admitter) lastPendingID() labelID { return pendingID + labelID(len(a.pending)-1) }

// pendingLabel returns the label of the current key that has the given temporary ID.
func (a *admitter) pendingLabel(id labelID) *pendingLabel { return &a.pending[id-pendingID] }

// findAndRecordUse returns the ID of a label value, or false if the value is new in this interval. If an
// earlier key has the value, it records that the value was used again. If only the current key has it, the
// ID is temporary until the key is admitted.
func (a *admitter) findAndRecordUse(l *labelValue) (id labelID, ok bool) {
	id, ok = a.labels.find(l.labelName, l.hash)
	if ok {
		a.labels.byID[id].recurred = true
		return id, true
	}
	return a.findPending(l.labelName)
}

// findPending returns the temporary ID of a label that the current key has used first in this interval. It
// returns false if the current key has no such label.
func (a *admitter) findPending(name labelName) (id labelID, ok bool) {
	for i := range a.pending {
		if a.pending[i].labelName == name {
			return pendingID + labelID(i), true
		}
	}
	return absentID, false
}

// priorityOf returns the priority of the label value or key with the given hash: priorityStable or priorityRecent if it
// kept its row from the previous interval, prioritySeen if it was only used twice in that interval, and priorityNew
// otherwise. For an origin without a previous interval, a second use in this interval counts instead.
func (a *admitter) priorityOf(hash uint64) rowPriority {
	priority, isKnown := a.previous.priorities[hash]
	if isKnown {
		return priority
	}
	recurredBefore := a.filter.recurredBefore.has(hash)
	recursNow := a.origin.isNew && a.filter.usedOnce.has(hash)
	if recurredBefore || recursNow {
		return prioritySeen
	}
	return priorityNew
}

// newHistory returns the history of a label value or key that gets a row now. priority is its priority in this
// interval, and nextPriority in the result is its priority in the next one, provided that it is used again.
func (a *admitter) newHistory(priority rowPriority) history {
	if a.origin.isNew { // it has no previous interval, so prioritySeen means that this is the second use
		isSecondUse := priority == prioritySeen
		return history{nextPriority: priorityRecent, recurred: isSecondUse}
	}
	if priority == priorityNew {
		return history{nextPriority: priorityRecent}
	}
	return history{nextPriority: priorityStable} // it was used in both intervals
}

// countLost records that the key has lost a label, and counts the key in the given counter.
func (a *admitter) countLost(l span.Label, counter *uint64) {
	a.admission.Collapsed |= setOf(l)
	a.countKey(counter)
}

// countKey adds the current key to a counter of keys, unless Admit has counted it already. In that case the key
// is admitted again for CountSpans, and stands for several spans.
func (a *admitter) countKey(counter *uint64) {
	wasCounted := a.spans > 1
	if !wasCounted {
		*counter++
	}
}

// resolveTag returns the ID of a tag "key:value". If the tag key has too many values in this interval, the
// tag becomes "key:tracer_blocked_value". If the origin has too many tag keys, the whole tag becomes
// "tracer_blocked_value". Either replacement is counted. list is the label that the tag belongs to:
// span.LabelPeerTag or span.LabelAdditionalTag.
func (a *admitter) resolveTag(list span.Label, tag string) (id labelID, isReplaced bool) {
	if tag == span.Blocked { // replaced by the client
		a.sentTags = append(a.sentTags, hashOfBlocked)
		return blockedID, true
	}
	sent := a.newLabel(list, tag)
	a.sentTags = append(a.sentTags, sent.hash)
	keyText, value, _ := strings.Cut(tag, ":")
	keyID, hasKey := a.resolveTagKey(list, keyText)
	if !hasKey {
		a.countLost(list, &a.lostCounts[list])
		return blockedID, true
	}
	sent.tagKey = keyID
	id, ok := a.idOfTag(list, sent, keyText, value)
	if !ok {
		return a.resolveBlockedTag(list, keyID, keyText), true
	}
	return id, false
}

// idOfTag returns the ID of a tag with the given key and value. It returns false if the tag key has too many
// different values, or if the client has replaced the value because of its own limit.
func (a *admitter) idOfTag(list span.Label, tag labelValue, key, value string) (id labelID, ok bool) {
	if value == span.Blocked {
		return absentID, false
	}
	values := a.tagValuesOf(tag.tagKey)
	id, ok = a.idOf(&values.budget, tag)
	if !ok {
		a.countLost(list, &values.lostCount)
		a.measureLostTag(values, tag.hash, key, value)
	}
	return id, ok
}

// resolveTagKey returns the ID of a tag key, such as "region" in the tag "region:eu". It returns false
// if there are too many tag keys. A tag key that is new in this interval gets a budget, a limit on its
// different values. list is the label that the tag belongs to: span.LabelPeerTag or span.LabelAdditionalTag.
func (a *admitter) resolveTagKey(list span.Label, text string) (id labelID, ok bool) {
	kind := tagKeyKind(list) // the tag keys of list are counted separately from its tags
	tagKey := a.newLabelOfKind(kind, text)
	id, ok = a.idOf(&a.origin.budgets[kind], tagKey)
	if !ok {
		return absentID, false
	}
	isNew := a.tagValuesOf(id) == nil
	if isNew {
		limit := a.config.tagBudget(list, text)
		kept := a.previous.keptTags[tagKey.hash]
		a.pendingLabel(id).values = a.newTagValues(limit, kept)
	}
	return id, true
}

// newTagValues returns the budget, a limit on different values, for a new tag key. The result is reused when
// the next key is admitted. limit is the maximum number of values, and kept is the number of values that keep
// their counters from the previous interval.
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
	if isPending(id) {
		return a.pendingLabel(id).values
	}
	return a.labels.byID[id].values
}

// blockedTag returns the text "key:tracer_blocked_value". It is valid until the next key is admitted.
func (a *admitter) blockedTag(key string) string {
	start := len(a.scratch)
	a.scratch = append(a.scratch, key...)
	a.scratch = append(a.scratch, ':')
	a.scratch = append(a.scratch, span.Blocked...)
	return stringOf(a.scratch[start:])
}

// resolveBlockedTag returns the ID of the tag "key:tracer_blocked_value", which replaces a tag if its tag key has
// too many different values. keyID and keyText are the ID and the text of the tag key. list is the label that
// the tag belongs to. The limit on the values of a tag key does not apply to this tag.
func (a *admitter) resolveBlockedTag(list span.Label, keyID labelID, keyText string) labelID {
	blocked := a.newLabel(list, a.blockedTag(keyText))
	id, isKnown := a.findAndRecordUse(&blocked)
	if isKnown {
		return id
	}
	blocked.tagKey = keyID
	blocked.isBlocked = true
	a.pending = append(a.pending, pendingLabel{labelValue: blocked})
	return a.lastPendingID()
}

// addPendingLabels registers the labels of the current key that are new in this interval, and returns their
// memory in bytes. It replaces their temporary IDs in a.encodedKey by final ones. The final IDs have the
// same order, so sorted tags stay sorted.
func (a *admitter) addPendingLabels() (bytes int) {
	firstNewID := labelID(len(a.labels.byID))
	for i := range a.pending {
		pending := &a.pending[i]
		added := pending.labelValue.clone()
		added.tagKey = finalID(added.tagKey, firstNewID)
		if !added.isBlocked {
			// This can be another budget than pending.budget, because clone copies the budget of a new tag key.
			budget := a.budgetOf(&added)
			budget.take(pending.share, added.isMask)
		}
		a.labels.add(added)
		bytes += labelBytes(&added)
	}
	for i, id := range a.encodedKey {
		a.encodedKey[i] = finalID(id, firstNewID)
	}
	return bytes
}

// finalID returns the ID that replaces a temporary ID of a new label. Other IDs, and the other numbers of an
// encoded key, stay as they are. firstNewID is the ID of the first new label.
func finalID(id, firstNewID labelID) labelID {
	if isPending(id) {
		return firstNewID + (id - pendingID)
	}
	return id
}

// keyHash returns a hash of the current key that is the same in every interval. It is made of the
// hashes of the labels, because their IDs differ between intervals. The hashes of tags are added up, so
// the order of the tags does not matter.
func (a *admitter) keyHash() uint64 {
	hash := a.origin.hash ^ uint64(a.encodedKey.facts())
	hash = mix(hash, a.hashOf(a.encodedKey.status()))
	for _, id := range a.encodedKey.texts() {
		hash = mix(hash, a.hashOf(id))
	}
	sumOfTags := uint64(0)
	for tags := range a.encodedKey.tagLists() {
		for _, id := range tags {
			sumOfTags += tagHash(a.hashOf(id))
		}
	}
	return mix(hash, sumOfTags)
}

// tagHash returns the number that a tag adds to the hash of a key, given the hash of the tag. The hash is
// mixed first, so that different sets of tags are unlikely to have the same sum.
func tagHash(hash uint64) uint64 { return mix(0, hash) }

// sentKeyHash returns the hash of the current key as the client sent it, before any label was replaced.
func (a *admitter) sentKeyHash() uint64 {
	hash := a.origin.hash ^ uint64(a.encodedKey.facts())
	for _, textHash := range a.sentTexts {
		hash = mix(hash, textHash)
	}
	sumOfTags := uint64(0)
	for _, sentHash := range a.sentTags {
		sumOfTags += tagHash(sentHash)
	}
	return mix(hash, sumOfTags)
}

// hashOf returns the hash of a label, given its ID. The label can be one of a.pending.
func (a *admitter) hashOf(id labelID) uint64 {
	switch {
	case id < firstID: // absentID or blockedID
		return uint64(id)
	case isPending(id):
		return a.pendingLabel(id).hash
	default:
		return a.labels.byID[id].hash
	}
}

// stringOf converts bytes to a string without copying them.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
