package registry

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/mask"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// judge finds what becomes of one key: each label has a number, or gets a place of its budget,
// or has its mask in its place, or is lost. Places are taken at once and given back where the
// key finds no row.
type judge struct {
	*tables
	id         OriginID
	origin     *origin
	isRetry    bool        // the batch was judged before: what came with it does not come again
	words      []uint32    // of the key
	anyBlocked [lists]bool // tags collapsed
	fresh      []fresh
	unplaced   []uint64    // identities of what came and got no place
	needed     familiarity // of the labels that had to be known, how well the best is
	admission  Admission   // as far as it is known
	scratch    []byte      // texts that are made for the key, and last as long as it is judged
	spare      []*tagKey
}

// fresh is a label that has a place of its budget and no number before its key has a row.
type fresh struct {
	label
	known  familiarity
	budget *budget // none of a tag that collapsed
}

// begin begins a key.
func (j *judge) begin(id OriginID, isRetry bool) {
	j.id, j.origin, j.isRetry = id, &j.origins.list[id], isRetry
	j.words, j.fresh, j.unplaced, j.scratch = j.words[:0], j.fresh[:0], j.unplaced[:0], j.scratch[:0]
	j.anyBlocked, j.needed, j.admission = [lists]bool{}, unknown, Admission{CameAgain: true}
}

// key judges the labels of a key.
func (j *judge) key(k *span.Key) {
	status := absentID
	if k.HTTPStatus != 0 { // a number, but nothing keeps a tracer from sending any
		from := len(j.scratch)
		j.scratch = strconv.AppendUint(j.scratch, uint64(k.HTTPStatus), 10)
		status = j.text(span.LabelHTTPStatus, stringOf(j.scratch[from:]))
	}
	j.words = append(j.words, uint32(j.id), status, uint32(k.Facts()))
	for l := range span.FirstList {
		id := absentID
		if text := *k.Text(l); text != "" {
			id = j.text(l, text)
		}
		j.words = append(j.words, id)
	}
	for list := span.FirstList; list < span.EndOfLists; list++ {
		tags := *k.Tags(list)
		j.words = append(j.words, uint32(len(tags)))
		for _, tag := range tags {
			j.words = append(j.words, j.tag(list, tag))
		}
	}
	j.words = orderTags(j.words, &j.anyBlocked)
}

// text judges a text, and masks it only where it would be lost. One that is lost is absent where
// it is a status, since there is no number that would say that it is blocked.
func (j *judge) text(l span.Label, text string) labelID {
	masks := j.config.Masking
	if masks == MaskAlways && isMaskable(l) {
		if name, ok := j.mask(l, text); ok {
			identity := j.origin.identityOf(j.nameOf(int32(l), text))
			j.cameWithoutPlace(identity, j.familiarity(identity))
			j.admission.Masked |= setOf(l)
			text, masks = name, MaskNever
		}
	}
	if id, ok := j.named(l, text, false); ok {
		return id
	}
	if masks == MaskOverBudget && isMaskable(l) {
		if name, ok := j.mask(l, text); ok {
			if id, ok := j.named(l, name, true); ok {
				j.admission.Masked |= setOf(l)
				return id
			}
		}
	}
	j.lose(l, &j.lost[l])
	if l == span.LabelHTTPStatus {
		return absentID
	}
	return blockedID
}

// named returns the number of a text, or what stands for one that gets a place.
func (j *judge) named(l span.Label, text string, isMask bool) (labelID, bool) {
	if text == span.Blocked {
		return blockedID, true // the tracer has budgets too: what it collapsed meets what we do
	}
	return j.place(&j.origin.budgets[l], label{labelName: j.nameOf(int32(l), text), isMask: isMask})
}

// mask returns the mask of a text, if it has one that fits its label. It may be longer than a
// text that was cut to the limit, or than what a page shows.
func (j *judge) mask(l span.Label, text string) (name string, ok bool) {
	from := len(j.scratch)
	j.scratch, ok = mask.Append(j.scratch, text)
	name = stringOf(j.scratch[from:])
	return name, ok && len(name) <= min(l.MaxBytes(), max(len(text), 100))
}

func (j *judge) nameOf(kind int32, text string) labelName {
	return labelName{scope{j.id, kind}, text}
}

// place returns the number of a label, or takes a place for it if it passes the gate of the
// budget. A mask is never better known than what came again in this interval, so it gets only
// places that no name which keeps coming needs, and none is kept for it.
func (j *judge) place(from *budget, l label) (id labelID, ok bool) {
	l.identity = j.origin.identityOf(l.labelName)
	if id, ok = j.find(l.labelName, l.identity); ok {
		if id < freshID && !l.isMask {
			j.labels.list[id].isMask = false
		}
		return id, true
	}
	gate, known := from.gate(), j.familiarity(l.identity)
	if l.isMask {
		known = min(known, cameAgain)
	}
	if known < gate {
		j.waitFor(gate)
		j.cameWithoutPlace(l.identity, known)
		return absentID, false
	}
	if gate != unknown {
		j.needed = max(j.needed, known)
	}
	from.take(known)
	j.fresh = append(j.fresh, fresh{l, known, from})
	return freshID + labelID(len(j.fresh)-1), true
}

// find returns the number of a label, or what stands for it if the key has it twice.
func (j *judge) find(name labelName, identity uint64) (id labelID, ok bool) {
	if id, ok = j.labels.find(name, identity); ok {
		if !j.isRetry {
			j.labels.list[id].cameAgain = true
		}
		return id, true
	}
	for i := range j.fresh {
		if j.fresh[i].labelName == name {
			return freshID + labelID(i), true
		}
	}
	return absentID, false
}

// waitFor notes that something may pass a gate when it comes again in this interval.
func (j *judge) waitFor(gate familiarity) {
	j.admission.Waits = j.admission.Waits || gate == cameAgain || gate == cameBefore && j.origin.isNew
}

// cameWithoutPlace notes that something came which has no place.
func (j *judge) cameWithoutPlace(identity uint64, known familiarity) {
	j.admission.CameAgain = j.admission.CameAgain && known != unknown
	j.unplaced = append(j.unplaced, identity)
}

// familiarity is how well a value, or the whole key, is known. What came in a batch that is
// tried again came with the first try, so that says nothing. Of an origin that was not there
// nothing can have come before, so what comes again is as good.
func (j *judge) familiarity(identity uint64) familiarity {
	if known, hadPlace := j.past.known[identity]; hadPlace {
		return known
	}
	if j.isRetry {
		return unknown
	}
	switch came := j.seen.has(identity); {
	case came[j.generation.other()], came[j.generation] && j.origin.isNew:
		return cameBefore
	case came[j.generation]:
		return cameAgain
	}
	return unknown
}

// lose notes that the key has lost a label, which is counted in keys.
func (j *judge) lose(l span.Label, keys *uint64) {
	j.admission.Collapsed |= setOf(l)
	if !j.isRetry {
		*keys++
	}
}

// tag judges a tag, by the budget of its tag key.
func (j *judge) tag(list span.Label, tag string) labelID {
	if tag == span.Blocked {
		return j.blocked(list, blockedID)
	}
	text, value, _ := strings.Cut(tag, ":")
	key, ok := j.tagKey(list, text)
	switch {
	case !ok:
		j.lose(list, &j.lost[list])
		return j.blocked(list, blockedID)
	case value == span.Blocked:
		return j.blockedTag(list, key, text)
	}
	tags := j.tagsOf(key)
	if id, ok := j.place(&tags.budget, label{labelName: j.nameOf(int32(list), tag), tagKey: key}); ok {
		return id
	}
	j.lose(list, &tags.lost)
	return j.blockedTag(list, key, text)
}

// tagKey returns the number of a tag key, or what stands for one that gets a place.
func (j *judge) tagKey(list span.Label, text string) (labelID, bool) {
	kind, before := tagKeyKind(list), len(j.fresh)
	id, ok := j.place(&j.origin.budgets[kind], label{labelName: j.nameOf(kind, text)})
	if len(j.fresh) > before {
		key := &j.fresh[before]
		if len(j.spare) == 0 {
			j.spare = append(j.spare, new(tagKey))
		}
		last := len(j.spare) - 1
		key.tags, j.spare = j.spare[last], j.spare[:last]
		limit := j.config.tagBudget(list, text)
		*key.tags = tagKey{budget: budget{limit: limit, kept: j.past.tagKeys[key.identity]}}
	}
	return id, ok
}

func (j *judge) tagsOf(key labelID) *tagKey {
	if key >= freshID {
		return j.fresh[key-freshID].tags
	}
	return j.labels.list[key].tags
}

// blockedTag is what a tag becomes that has lost its value. It takes no place of a budget.
func (j *judge) blockedTag(list span.Label, key labelID, text string) labelID {
	from := len(j.scratch)
	j.scratch = append(append(append(j.scratch, text...), ':'), span.Blocked...)
	name := j.nameOf(int32(list), stringOf(j.scratch[from:]))
	identity := j.origin.identityOf(name)
	id, ok := j.find(name, identity)
	if !ok {
		id = freshID + labelID(len(j.fresh))
		added := label{labelName: name, identity: identity, tagKey: key, isBlocked: true}
		j.fresh = append(j.fresh, fresh{label: added})
	}
	return j.blocked(list, id)
}

// blocked notes that one of a list's tags has collapsed, here or in the tracer, into a label.
func (j *judge) blocked(list span.Label, into labelID) labelID {
	j.anyBlocked[list-span.FirstList] = true
	return into
}

// stringOf are the same bytes, not a copy.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
