package registry

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Glance admits the keys that change nothing: those whose every label is known
// already, or collapses. In a flood these are nearly all of them, from the first
// seconds of an interval on. It takes no lock, and neither decodes nor normalises a
// key: a label that is as it should be is looked at where it lies, once, and is
// found, or is not while its budget is used up. Of any other key it says that it does
// not know, and Admit does. What it says is what Admit would have said.
//
// It is right without the lock because what it sees only ever grows. It sees first
// that a budget is used up, which stays so, and then that a label is not among those
// admitted: none can have come in between, and none will come.
//
// A Glance is one publisher's, and used between its Enter and Exit.
type Glance struct {
	registry *Registry
	standing *standing
	origin   OriginID
	tags     [maxGlancedTags]int32 // names of this key's tags that lost their values
	lostTags int
	lostAt   uint16 // which of its tags lost their values

	labels  [FieldPeerTag]met         // by field, the label that was found last
	scopes  [FieldResource + 1]uint64 // what the hash of a label becomes by, see hashIn
	tagName met                       // the name of a tag that was found last
	words   keyWords
	hadMore bool // not all words behind that of the middle's labels are absent
	isFound bool // words are those of the last key, and found is its row
	found   Admission

	middle     uint64    // of the last key, see span.Outline
	middleLost Collapsed // labels that it lost

	lost      Collapsed // by so many keys in a row
	lostTimes uint64
	lostSum   [FieldWholeKey]uint64 // by those before
	lostAny   bool
	lostNames []lostName
}

// maxGlancedTags is how many peer tags an outline has at most.
const maxGlancedTags = len(span.Outline{}.PeerTags)

// Begin makes it an origin's in the cycle's interval. What it has counted of another
// one must have been settled.
func (g *Glance) Begin(r *Registry, origin OriginID) {
	g.registry, g.origin, g.standing = r, origin, &r.standings[origin]
	g.labels, g.tagName, g.isFound = [FieldPeerTag]met{}, met{}, false
	for f := range g.scopes {
		g.scopes[f] = hashIn(scopeOf(origin, Field(f)), 0)
	}
	g.words[wordOrigin] = uint32(origin)
	g.forget()
}

// keyWords are the words of a key, see charge.
type keyWords [wordTags + maxGlancedTags]uint32

// set says whether that changes a word: not to 0.
func (w *keyWords) set(at int, word uint32) (changed uint32) {
	changed = w[at] ^ word
	w[at] = word
	return changed
}

// Admit says what Cycle.Admit would say of a key, or that it does not know. It is told
// how much is kept of a resource.
func (g *Glance) Admit(raw []byte, o *span.Outline, maxResource int) (Admission, bool) {
	key := unsafe.String(unsafe.SliceData(raw), len(raw))
	a, ok := g.admit(key, o, maxResource)
	if !g.isFound {
		o.Forget() // or the next key's words would begin with what is left of this one's
	}
	return a, ok
}

func (g *Glance) admit(key string, o *span.Outline, maxResource int) (Admission, bool) {
	full := g.standing.full.Load() // before anything is looked for
	wasFound := g.isFound
	g.isFound, g.lostTags, g.lostAt = false, 0, 0

	changed, collapsed, known := g.names(key, o, full, maxResource)
	if known > over {
		return g.beyond(known, collapsed)
	}
	switch {
	case !o.Repeats:
		differs, lost, known := g.others(key, o, full, FieldType, FieldHTTPMethod)
		if collapsed |= lost; known > over {
			return g.beyond(known, collapsed)
		}
		changed |= differs | g.words.set(wordStatus, o.HTTPStatus)
		g.middle, g.middleLost = o.Middle, lost
	case wasFound && o.Middle == g.middle:
		collapsed |= g.middleLost
	default:
		return Admission{}, false
	}
	if o.HasMore || g.hadMore {
		g.hadMore = true
		differs, lost, known := g.others(key, o, full, FieldHTTPMethod, FieldPeerTag)
		if collapsed |= lost; known > over {
			return g.beyond(known, collapsed)
		}
		changed |= differs
		g.hadMore = o.HasMore
	}
	tags := 0
	if o.Peers > 0 {
		var ids [maxGlancedTags]valueID
		lost := Collapsed(0)
		tags, lost, known = g.peerTags(&ids, key, o, full)
		if collapsed |= lost; known > over {
			return g.beyond(known, collapsed)
		}
		for i, id := range ids[:tags] {
			changed |= g.words.set(wordTags+i, id)
		}
	}
	facts := uint32(tags)<<8 | uint32(o.TraceRoot)<<1
	if o.Synthetics {
		facts |= 1
	}
	changed |= g.words.set(wordFacts, facts)
	return g.row(g.words[:wordTags+tags], wasFound && changed == 0, collapsed, full)
}

// names looks at the labels that every key has. Whether they can stay is seen with their
// hash. In a flood it is half of what a key costs, so it is no loop: what each of them is,
// is a constant, and what is the same for all is there once.
func (g *Glance) names(key string, o *span.Outline, full uint32, maxResource int) (changed uint32, lost Collapsed, known verdict) {
	sieve := g.registry.values.places.sieve.view()

	service := o.Labels[FieldService].Of(key)
	hash, isNormal := span.LookService(service)
	if !isNormal {
		return 0, 0, unknown
	}
	id, known := g.name(FieldService, service, hash, sieve, full)
	if lost = known.lost(FieldService); known > over {
		return 0, lost, known
	}
	changed = g.words.set(wordLabels+int(FieldService), id)

	operation := o.Labels[FieldOperation].Of(key)
	if hash, isNormal = span.LookOperation(operation); !isNormal {
		return changed, lost, unknown
	}
	id, known = g.name(FieldOperation, operation, hash, sieve, full)
	if lost |= known.lost(FieldOperation); known > over {
		return changed, lost, known
	}
	changed |= g.words.set(wordLabels+int(FieldOperation), id)

	resource := o.Labels[FieldResource].Of(key)
	if hash, isNormal = span.Look(resource); !isNormal || resource == "" || len(resource) > maxResource {
		return changed, lost, unknown
	}
	id, known = g.name(FieldResource, resource, hash, sieve, full)
	lost |= known.lost(FieldResource)
	return changed | g.words.set(wordLabels+int(FieldResource), id), lost, known
}

// others looks at labels that a key may lack.
func (g *Glance) others(key string, o *span.Outline, full uint32, from, to Field) (changed uint32, lost Collapsed, known verdict) {
	for f := from; f < to; f++ {
		id := absent
		if part := o.Labels[f]; !part.IsEmpty() {
			text, last := part.Of(key), &g.labels[f]
			if id = last.id; text != last.text {
				id, known = g.otherLabel(f, text, full)
				if lost |= known.lost(f); known > over {
					return changed, lost, known
				}
			}
		}
		changed |= g.words.set(wordLabels+int(f), id)
	}
	return changed, lost, admitted
}

// beyond is what becomes of a key with a label that is homeless or unknown.
func (g *Glance) beyond(known verdict, lost Collapsed) (Admission, bool) {
	if known == unknown {
		return Admission{}, false
	}
	return g.overflow(lost), true
}

// row finds the aggregate of the words, which may be the last one's: the keys of a flood
// are all one once they have lost their labels.
func (g *Glance) row(words []uint32, isLast bool, collapsed Collapsed, full uint32) (Admission, bool) {
	if !isLast {
		id, partition, ok := g.registry.rows.find(words)
		if !ok {
			if full&(1<<FieldWholeKey) == 0 {
				return Admission{}, false
			}
			return g.overflow(collapsed), true
		}
		g.found = Admission{ID: id, Hash: partition}
	}
	g.isFound = true
	g.lose(collapsed)
	return Admission{ID: g.found.ID, Hash: g.found.Hash, Collapsed: collapsed}, true
}

// overflow is the admission of a key that finds no row, and has lost what it has lost.
func (g *Glance) overflow(lost Collapsed) Admission {
	g.lose(lost)
	return Admission{ID: g.standing.overflows, Hash: g.standing.hash, Collapsed: 1 << FieldWholeKey}
}
