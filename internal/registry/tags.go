package registry

import (
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// encodeTags appends a list of tags to a.encodedKey: the number of tags, and their IDs. The IDs are sorted, so
// keys that differ only in the order of their tags are equal. If several tags were replaced by the same tag,
// a.encodedKey contains that tag once. list is span.LabelPeerTag or span.LabelAdditionalTag.
func (a *admitter) encodeTags(list span.Label, tags []string) {
	ids := a.tagIDs[:0]
	hasReplacedTag := false
	for _, tag := range tags {
		id, isReplaced := a.resolveTag(list, tag)
		ids = append(ids, id)
		hasReplacedTag = hasReplacedTag || isReplaced
	}
	a.tagIDs = ids // keeps the memory for the next list
	slices.Sort(ids)
	if hasReplacedTag {
		ids = slices.Compact(ids)
	}
	a.encodedKey = append(a.encodedKey, uint32(len(ids)))
	a.encodedKey = append(a.encodedKey, ids...)
}

// resolveTag returns the ID of a tag "key:value". If the tag key has too many values in this interval, the
// tag becomes "key:tracer_blocked_value". If the origin has too many tag keys, the whole tag becomes
// "tracer_blocked_value". isReplaced is true in both cases. list is span.LabelPeerTag or span.LabelAdditionalTag.
func (a *admitter) resolveTag(list span.Label, tag string) (id labelID, isReplaced bool) {
	if tag == span.Blocked { // replaced by the client
		a.sentTagHashes = append(a.sentTagHashes, hashOfBlocked)
		return blockedID, true
	}
	sent := a.newLabel(list, tag)
	a.sentTagHashes = append(a.sentTagHashes, sent.hash)
	key, value, _ := strings.Cut(tag, ":")
	keyID, hasKey := a.resolveTagKey(list, key)
	if !hasKey {
		a.admission.Collapsed |= setOf(list)
		a.countKey(&a.lostCounts[list])
		return blockedID, true
	}
	isBlockedByClient := value == span.Blocked
	if !isBlockedByClient {
		values := a.tagValuesOf(keyID)
		sent.tagKey = keyID
		id, ok := a.idOf(&values.budget, sent)
		if ok {
			return id, false
		}
		a.admission.Collapsed |= setOf(list)
		a.countKey(&values.lostCount)
		a.measureLostTag(values, sent.hash, key, value)
	}
	return a.resolveBlockedTag(list, keyID, key), true
}

// resolveTagKey returns the ID of a tag key, such as "region" in the tag "region:eu". It returns false
// if there are too many tag keys. A tag key that is new in this interval gets a budget for its values.
// list is span.LabelPeerTag or span.LabelAdditionalTag.
func (a *admitter) resolveTagKey(list span.Label, text string) (id labelID, ok bool) {
	kind := tagKeyKind(list) // the tag keys of list are counted separately from its tags
	tagKey := a.newLabelOfKind(kind, text)
	id, isKnown := a.findAndRecordUse(&tagKey)
	if isKnown {
		return id, true
	}
	id, ok = a.addPending(&a.origin.budgets[kind], tagKey)
	if !ok {
		return absentID, false
	}
	maxValues := a.config.tagBudget(list, text)
	a.labelOf(id).values = a.newTagValues(maxValues, a.previous.keptTagsOf(tagKey.hash))
	return id, true
}

// newTagValues returns the budget for the values of a new tag key. limit is the maximum number of different
// values, and kept counts the values that keep their slots from the previous interval.
func (a *admitter) newTagValues(limit int, kept keptCount) *tagValues {
	values := a.takeSpareTagValues()
	*values = tagValues{budget: newBudget(limit, kept), limit: limit}
	return values
}

// takeSpareTagValues returns memory for a new tagValues. It reuses that of an earlier tag key that got no ID.
func (a *admitter) takeSpareTagValues() *tagValues {
	last := len(a.spareTagValues) - 1
	if last < 0 {
		return new(tagValues)
	}
	values := a.spareTagValues[last]
	a.spareTagValues = a.spareTagValues[:last]
	return values
}

// tagValuesOf returns the budget for the values of a tag key, given the ID of the tag key.
func (a *admitter) tagValuesOf(id labelID) *tagValues { return a.labelOf(id).values }

// blockedTag returns the text "key:tracer_blocked_value". It is valid until the next key is admitted.
func (a *admitter) blockedTag(key string) string {
	start := len(a.scratch)
	a.scratch = append(a.scratch, key...)
	a.scratch = append(a.scratch, ':')
	a.scratch = append(a.scratch, span.Blocked...)
	return stringOf(a.scratch[start:])
}

// resolveBlockedTag returns the ID of the tag "key:tracer_blocked_value", which replaces a tag if its tag key has
// too many different values. keyID and key are the ID and the text of the tag key. list is span.LabelPeerTag or
// span.LabelAdditionalTag. The replacement needs no slot of a budget.
func (a *admitter) resolveBlockedTag(list span.Label, keyID labelID, key string) labelID {
	blocked := a.newLabel(list, a.blockedTag(key))
	id, isKnown := a.findAndRecordUse(&blocked)
	if isKnown {
		return id
	}
	blocked.tagKey = keyID
	blocked.isBlocked = true
	a.pending = append(a.pending, pendingLabel{labelValue: blocked})
	return a.lastPendingID()
}
