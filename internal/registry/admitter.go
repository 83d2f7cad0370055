package registry

import (
	"strings"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// admitter admits one key at a time to the interval, in two steps. The first step resolves each
// label of the key to one of:
//
//   - the ID that the label already has
//   - a pending ID, if the label is new and its budget has a free slot
//   - the ID of the label's mask, known or pending
//   - blockedID, if the label is lost
//
// The second step looks for the row of the key. Pending labels get their IDs if the key has or gets a row.
// Otherwise they give back the slots of their budgets, so a key without a row uses neither budget nor memory.
type admitter struct {
	*tables
	originID         OriginID
	origin           *origin
	spans            uint64 // number of spans with the key that the call stands for
	isCounted        bool   // the counters of replaced labels include the key already
	encodedKey       encodedKey
	tagIDs           []labelID      // IDs of the tags of one list
	pending          []pendingLabel // labels of the key that are new in this interval
	sentTextHashes   []uint64       // hashes of the key's status and texts as the client sent them
	maskedTextHashes []uint64       // like sentTextHashes, but with the hash of the mask for texts that have one
	sentTagHashes    []uint64       // hashes of the key's tags as the client sent them
	rejected         []uint64       // hashes of values and keys that got no slot; filter records their use
	admission        Admission      // result so far
	scratch          []byte         // texts built for the key; overwritten by the next one
	spareTagValues   []*tagValues   // budgets of new tag keys whose key got no row; reused by later keys
}

// pendingLabel is a label of the current key that is new in this interval. It holds a slot of its budget, and
// gets an ID if the key gets a row.
type pendingLabel struct {
	labelValue
	budget *budget // nil if isBlocked is set, because such a label needs no slot
	share  *slots  // share of budget that the slot is from; nil if isBlocked is set
}

// admit returns the row, a set of counters, in which the spans of a key are counted. A key that is new in
// this interval gets a row of its own if the limits allow it. Otherwise its spans are counted in a row
// without labels. spans is the number of spans for which admit is called. If isCounted is set, an earlier call has
// counted the key in the counters of replaced labels.
func (a *admitter) admit(id OriginID, key *span.Key, spans uint64, isCounted bool) Admission {
	a.reset(id)
	a.spans, a.isCounted = spans, isCounted
	a.encodeKey(key) // sets a.encodedKey and, if labels are replaced, a.admission
	hash := a.keyHash()
	row, isKnown := a.rows.find(a.encodedKey, hash)
	if isKnown {
		a.rows.byID[row].recurred = true // an earlier call has added the row
		return a.admitToRow(row)
	}
	row, hasRow := a.addRow(hash)
	if !hasRow {
		return a.admitToOverflowRow(hash, key.Measure)
	}
	return a.admitToRow(row)
}

// addRow adds a row, a set of counters, for the current key, and returns the ID of the row. It also adds the
// labels of the key that are new in this interval. It returns false if the limits on rows do not allow it. hash
// is the hash of the key.
func (a *admitter) addRow(hash uint64) (id KeyID, ok bool) {
	priority := a.priorityOf(hash) // some rows are only for keys that were used in the previous interval
	source, hasFreeRow := a.rowBudget.findFreeRow(a.origin, priority)
	if !hasFreeRow {
		return 0, false
	}
	labelBytes := a.addPendingLabels()
	a.rowBudget.take(a.origin, source, labelBytes+rowBytes(a.encodedKey))
	history := a.newHistory(priority)
	if source.fromReserve {
		history.nextPriority = priorityStable // the reserve lets a small origin grow, so its rows are kept first
	}
	entry := KeyEntry{Origin: a.originID, Key: a.labels.keyOf(a.encodedKey)}
	return a.rows.add(a.encodedKey, hash, history, entry), true
}

// reset prepares the admitter for a key of the given origin.
func (a *admitter) reset(id OriginID) {
	a.originID = id
	a.origin = &a.origins.byID[id]
	a.encodedKey = a.encodedKey[:0]
	a.pending = a.pending[:0]
	a.sentTextHashes = a.sentTextHashes[:0]
	a.maskedTextHashes = a.maskedTextHashes[:0]
	a.sentTagHashes = a.sentTagHashes[:0]
	a.rejected = a.rejected[:0]
	a.admission = Admission{}
	a.scratch = a.scratch[:0]
}

// forgetTexts drops all references to the texts of the last key, which are in the memory of a message.
func (a *admitter) forgetTexts() { clear(a.pending) }

// admitToRow returns the result for the current key: its spans are counted in the given row. If a mask or
// tracer_blocked_value has replaced labels of the key, admitToRow also records the use of the original values,
// and of the key with them: those that are used again get slots and rows first in the next interval.
func (a *admitter) admitToRow(row KeyID) Admission {
	a.admission.ID = row
	a.admission.Hash = partitionHash(a.rows.byID[row].hash)
	if a.admission.IsUnchanged() {
		return a.admission
	}
	hasLostLabel := a.admission.Collapsed != 0
	if hasLostLabel {
		a.measureLostKey()
	}
	a.countMaskedLabels()
	a.rejected = append(a.rejected, a.sentKeyHash()) // encodeKey has added the original values
	a.admission.ReplacedAtFirstUse = a.filter.recordUses(a.rejected)
	return a.admission
}

// countMaskedLabels adds the key to the counter of each label in which a mask, such as "GET /users/{id}", has
// replaced the value.
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
	a.measureLostKey()
	a.rejectPending() // adds the new labels to a.rejected
	// If all labels of the key get slots in the next interval, its hash is sentKeyHash then.
	a.rejected = append(a.rejected, hash, a.sentKeyHash())
	admission := a.overflowRow(a.originID, measure)
	admission.ReplacedAtFirstUse = a.filter.recordUses(a.rejected)
	return admission
}

// rejectPending gives back the slots of the labels that are new in this interval, because their key gets no row.
func (a *admitter) rejectPending() {
	for i := range a.pending {
		l := &a.pending[i]
		if l.isBlocked {
			continue // it has no slot
		}
		l.budget.giveBack(l.share, l.isOnlyMask)
		a.rejected = append(a.rejected, l.hash)
		a.countKey(a.lostCounter(&l.labelValue))
		if l.values != nil {
			a.spareTagValues = append(a.spareTagValues, l.values)
		}
	}
}

// lostCounter returns the counter of keys that have lost the label l, because it has too many different
// values. There is one counter for each label, and for tags one for each tag key.
func (a *admitter) lostCounter(l *labelValue) *uint64 {
	if l.isTag() {
		return &a.tagValuesOf(l.tagKey).lostCount
	}
	return &a.lostCounts[l.scope.kind.label()]
}

// encodeKey encodes a key as a list of numbers in a.encodedKey: the IDs of the origin and of the HTTP status,
// the fields with few possible values in one number, the ID of each text, and the lists of tags.
func (a *admitter) encodeKey(k *span.Key) {
	status := a.resolveStatus(k.HTTPStatus)
	a.encodedKey = append(a.encodedKey, uint32(a.originID), status, k.Enums())
	for label := range span.EndOfTexts { // the labels with a single text have the lowest numbers
		id := a.resolveText(label, *k.Text(label))
		a.encodedKey = append(a.encodedKey, id)
	}
	for list := span.FirstList; list < span.EndOfLists; list++ {
		a.encodeTags(list, *k.Tags(list))
	}
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
	if !value.isOnlyMask { // a client has sent this text, so it is no longer used only as a mask
		a.clearOnlyMask(budget, id)
	}
	return id, true
}

// addPending adds a label value that is new in this interval to a.pending, the new values of the current key. The
// value takes a slot of the budget. addPending returns a temporary ID. It returns false if no slot is free.
func (a *admitter) addPending(budget *budget, value labelValue) (id labelID, ok bool) {
	priority := a.priorityOf(value.hash) // some slots are only for values that were used before
	isMask := value.isOnlyMask           // only some slots can hold masks
	share := budget.take(priority, isMask)
	if share == nil {
		a.rejected = append(a.rejected, value.hash) // the next interval prefers it if it is used again
		return absentID, false
	}
	value.history = a.newHistory(priority)
	a.pending = append(a.pending, pendingLabel{labelValue: value, budget: budget, share: share})
	return a.lastPendingID(), true
}

// clearOnlyMask records that a client has sent the value with the given ID. If the value was used only as a mask so far,
// the budget no longer counts it as a mask.
func (a *admitter) clearOnlyMask(budget *budget, id labelID) {
	value := a.labelOf(id)
	if value.isOnlyMask {
		value.isOnlyMask = false
		budget.masks.taken--
	}
}

// labelOf returns the label with the given ID, which can be temporary.
func (a *admitter) labelOf(id labelID) *labelValue {
	if isPending(id) {
		return &a.pending[id-pendingID].labelValue
	}
	return &a.labels.byID[id]
}

// lastPendingID returns the ID of the last pending label.
func (a *admitter) lastPendingID() labelID { return pendingID + labelID(len(a.pending)-1) }

// findAndRecordUse returns the ID of a label value that an earlier key of this interval has used, and records that it
// was used again. For a value that the current key uses twice, it returns the temporary ID. It returns false if the
// value is new.
func (a *admitter) findAndRecordUse(l *labelValue) (id labelID, ok bool) {
	id, ok = a.labels.find(l.labelName, l.hash)
	if ok {
		a.labels.byID[id].recurred = true
		return id, true
	}
	return a.findPending(l.labelName)
}

// findPending returns the temporary ID of a label in a.pending, the new labels of the current key. It returns false
// if they do not include a label with this name.
func (a *admitter) findPending(name labelName) (id labelID, ok bool) {
	for i := range a.pending {
		if a.pending[i].labelName == name {
			return pendingID + labelID(i), true
		}
	}
	return absentID, false
}

// priorityOf returns the priority of a label value or key that has no slot in this interval yet, given its hash.
// It is priorityStable or priorityRecent if the value kept its slot from the previous interval, prioritySeen if the
// value has been used twice without a slot, and priorityNew otherwise.
func (a *admitter) priorityOf(hash uint64) slotPriority {
	priority, isKept := a.previous.priorities[hash]
	if isKept {
		return priority
	}
	if a.recurredWithoutSlot(hash) {
		return prioritySeen
	}
	return priorityNew
}

// recurredWithoutSlot reports whether a label value or key was used twice in the previous interval without getting a
// slot. An origin without a previous interval need not wait for the next one: its values recur if they were used
// before in this interval.
func (a *admitter) recurredWithoutSlot(hash uint64) bool {
	if a.origin.isNew {
		return a.filter.usedOnce.has(hash)
	}
	return a.filter.recurredBefore.has(hash)
}

// newHistory returns the history of a label value or key that gets a slot now. priority is its priority in this
// interval. The result has its priority in the next interval, provided that it is used again.
func (a *admitter) newHistory(priority slotPriority) history {
	switch {
	case priority == priorityNew: // its first use
		return history{nextPriority: priorityRecent}
	case a.origin.isNew: // an earlier use must have been in this interval, which is the first of the origin
		return history{nextPriority: priorityRecent, recurred: true}
	default: // it was used at least twice in the previous interval
		return history{nextPriority: priorityStable}
	}
}

// countKey adds the current key to a counter of keys, unless an earlier call has done so.
func (a *admitter) countKey(counter *uint64) {
	if !a.isCounted {
		*counter++
	}
}

// addPendingLabels gives IDs to the labels of the current key that are new in this interval, and returns their
// memory in bytes. In a.encodedKey, the temporary ID pendingID+i of label a.pending[i] becomes firstNewID+i. New IDs
// are larger than earlier ones, as temporary IDs are, so sorted tags stay sorted.
func (a *admitter) addPendingLabels() (bytes int) {
	firstNewID := labelID(len(a.labels.byID))
	for i := range a.pending {
		added := a.pending[i].labelValue
		added.text = strings.Clone(added.text) // the original is part of a message
		added.tagKey = finalID(added.tagKey, firstNewID)
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
// hashes of the labels, because their IDs differ between intervals.
func (a *admitter) keyHash() uint64 {
	hash := mix(a.originAndEnumsHash(), a.labelHash(a.encodedKey.status()))
	for _, id := range a.encodedKey.texts() {
		hash = mix(hash, a.labelHash(id))
	}
	var tags tagsHash // does not depend on the order of the IDs
	for _, ids := range a.encodedKey.tagLists() {
		for _, id := range ids {
			tags.add(a.labelHash(id))
		}
	}
	return mix(hash, uint64(tags))
}

// sentKeyHash returns the hash that keyHash returns if no label is replaced.
func (a *admitter) sentKeyHash() uint64 { return a.hashWithTexts(a.sentTextHashes) }

// maskedKeyHash returns the hash of the current key with masks, such as "GET /users/{id}", instead of all texts
// that have one.
func (a *admitter) maskedKeyHash() uint64 { return a.hashWithTexts(a.maskedTextHashes) }

// hashWithTexts returns the hash that the current key has with the tags that the client sent. textHashes are the
// hashes of its HTTP status and of its texts.
func (a *admitter) hashWithTexts(textHashes []uint64) uint64 {
	hash := a.originAndEnumsHash()
	for _, textHash := range textHashes {
		hash = mix(hash, textHash)
	}
	var tags tagsHash
	for _, tagHash := range a.sentTagHashes {
		tags.add(tagHash)
	}
	return mix(hash, uint64(tags))
}

// originAndEnumsHash returns a hash of the origin and of the fields of the current key that are not labels.
func (a *admitter) originAndEnumsHash() uint64 { return a.origin.hash ^ uint64(a.encodedKey.enums()) }

// tagsHash is a hash of a set of tags that does not depend on their order, because it is a sum.
type tagsHash uint64

// add adds a tag, given its hash. It mixes the hash first, so that different sets of tags are unlikely to have
// the same sum.
func (h *tagsHash) add(hash uint64) { *h += tagsHash(mix(0, hash)) }

// labelHash returns the hash of a label, given its ID. The label can be one of a.pending.
func (a *admitter) labelHash(id labelID) uint64 {
	switch id {
	case absentID:
		return hashOfAbsent
	case blockedID:
		return hashOfBlocked
	default:
		return a.labelOf(id).hash
	}
}

// stringOf converts bytes to a string without copying them.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
