package registry

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// judge finds what becomes of a key: each label is a number already, or passes the gate of
// its budget and is fresh, or loses its name; then there is a row for the key, or not. There
// is one for each publisher's lookups, which have no lock and change nothing, and the
// Registry's own under its lock. It judges a key first; where a row may be had, it does the
// same once more and gives numbers to what is fresh. So what both say is decided in one
// place.
//
// A key is judged in two steps: each label is searched for, and then it is decided what
// becomes of those that have no number (passing.go).
type judge struct {
	registry   *Registry
	origin     OriginID
	identity   uint64 // of the origin, the same in every interval
	isNew      bool   // the origin was not there in the last interval
	isRetry    bool   // the batch was judged before: what came with it does not come again
	last       [span.FirstList]found
	tagKeys    [lists][fewTags]found
	lastStatus foundStatus
	digits     [10]byte
	folder     *folder
	mender     *span.Mender // nil where keys are normal
	lang       string       // names what it mends
	dice       uint64

	// Of the key that is judged:
	of         *span.Key // itself, where its labels are mended
	gates      gates     // read before anything is searched for
	gives      bool      // numbers to what is fresh
	words      []uint32
	numbered   span.Labels  // texts with numbers of their own, at first those of the last key that came again
	anyBlocked [lists]bool  // of these, whether tags collapsed
	undecided  []unnumbered // labels that were searched for
	fresh      []hashedText // hashes of the texts of what has no number yet, see freshID
	bytes      int          // of what got a number
	unplaced   []spot       // of labels that have no place, in the sights
	waits      bool         // it may get more when it comes again
	isOnce     bool         // it probably never comes again
	isMended   bool         // the label that is judged was mended, and is decided at once
	anyMended  bool         // of its labels
	known      sight        // of its labels that had to be known, what is known of the best
	collapsed  Collapsed
	lostBy     lostLabels // those that collapsed
	freshBy    lostLabels // those that are fresh, and lost where there is no row
	losses     losses     // of all keys, not yet reported
}

// found is a text that was found. Types and kinds repeat even in a flood, and so do tag
// keys, each at its place in the list.
type found struct {
	text     string // the Registry's own
	id       labelID
	isMarked bool // of a tag key: it is noted that it came again
}

// fewTags is of how many places in a list the tag key that was found is kept.
const fewTags = 16

// freshID and what follows are in the place of numbers that labels don't have yet.
const freshID labelID = 1 << 31

// begin makes it one of an origin, whose identity can be had under the Registry's lock alone.
func (j *judge) begin(r *Registry, origin OriginID, identity uint64) {
	*j = judge{
		registry: r, origin: origin, identity: identity,
		folder: j.folder, mender: j.mender, lang: j.lang, dice: j.dice, words: j.words, undecided: j.undecided, fresh: j.fresh, unplaced: j.unplaced,
		lostBy: j.lostBy, freshBy: j.freshBy, losses: j.losses,
	}
	if j.folder == nil {
		j.folder = &folder{}
	}
	j.folder.templates = r.templates
	j.isNew = r.past.of(j.identity).isNew
}

// state is what is published of the origin's budgets.
func (j *judge) state() *publishedGates { return &j.registry.budgets.published[j.origin] }

// key judges a whole key, as far as its words, in which tags stand as they came.
func (j *judge) key(k *span.Key) {
	j.gates = j.state().load() // before anything is searched for
	j.words = beginWords(j.words[:0], j.origin, k)
	j.undecided, j.fresh, j.unplaced = j.undecided[:0], j.fresh[:0], j.unplaced[:0]
	j.bytes, j.waits, j.anyMended, j.collapsed, j.known = 0, false, false, 0, firstSight
	j.folder.begin()
	j.lostBy.clear()
	j.freshBy.clear()
	j.status(k.HTTPStatus)
	for l := range span.FirstList {
		if j.numbered.Has(l) {
			j.words = j.words[:len(j.words)+1] // where the last key has the same
			continue
		}
		id := absentID
		if text := *k.Text(l); text == "" {
			j.numbered = j.numbered.With(l)
		} else {
			id = j.text(l, text)
		}
		j.words = append(j.words, id)
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		j.tags(l, *k.Tags(l))
	}
	j.decideAll()
}

// order puts the tags of the judged key in order.
func (j *judge) order() { j.words = orderTags(j.words, &j.anyBlocked) }

// text judges a text.
func (j *judge) text(l span.Label, text string) labelID {
	last := &j.last[l]
	if j.gates.of(l).asks() == firstSight && text == last.text {
		j.numbered = j.numbered.With(l)
		return last.id
	}
	if id, ok := j.lookUp(l, text); ok {
		j.numbered = j.numbered.With(l)
		*last = found{text: j.registry.budgets.labels.at(id).text, id: id}
		return id
	}
	if text == span.Blocked {
		// The tracer has budgets too. What it collapsed meets what we do.
		j.numbered = j.numbered.With(l)
		return blockedID
	}
	if j.mustMend() {
		if id, ok := j.asItCame(l, 0, absentID, j.gates.of(l), text); ok {
			return id
		}
		if normal := j.mender.Label(l, text, j.lang); normal != text {
			return j.mended(l, 0, text, normal)
		}
	}
	if name, ok := j.fold(l, text); ok {
		if id, ok := j.lookUp(l, name); ok {
			return id
		}
		text = name
	}
	return j.newValue(l, text, len(j.words))
}

func (j *judge) lookUp(l span.Label, text string) (labelID, bool) {
	return j.registry.budgets.labels.lookUp(scopeOf(j.origin, l), text)
}

// newValue judges a value that has no number, by the gate of its label. Its number belongs at
// one of the words.
func (j *judge) newValue(l span.Label, text string, at int) labelID {
	if j.folder.isAsked(l) {
		j.folder.asked(l)
	}
	gate := j.gates.of(l)
	if gate == shut {
		return j.lose(l) // whatever it is
	}
	return j.later(l, absentID, gate.asks(), at, text)
}

// fold returns the name that a template gives a text without a number, unless a place is kept
// for the text.
func (j *judge) fold(l span.Label, text string) (name string, ok bool) {
	if !j.folder.isAsked(l) {
		return "", false
	}
	name, ok = j.folder.name(j.identity, l, text)
	if !ok || j.keeps(l, text) {
		return "", false
	}
	j.folder.labels |= setOf(l)
	return name, true
}

// keeps says whether a place is kept for a text without a number: it repeated in the last
// interval.
func (j *judge) keeps(l span.Label, text string) bool {
	return j.gates.of(l)&noneKept == 0 && j.registry.past.known.find(textHash(text).identity(j.identity, int(l))) == repeated
}

// lose is what becomes of a text that gets no number, nor does its name: it collapses, and
// teaches what varies. There is no status that would say that it is blocked.
func (j *judge) lose(l span.Label) labelID {
	j.collapsed |= setOf(l)
	j.lostBy.labels = append(j.lostBy.labels, l)
	if j.folder.isAsked(l) {
		j.folder.sees(l)
	}
	if l == span.LabelHTTPStatus {
		return absentID
	}
	return blockedID
}

// freshOne stands for a label that has no number yet.
func (j *judge) freshOne(hash hashedText) labelID {
	at := slices.Index(j.fresh, hash)
	if at < 0 {
		at = len(j.fresh)
		j.fresh = append(j.fresh, hash)
	}
	return freshID + labelID(at)
}

// giveText gives a text a number, and charges it to the budget of its label.
func (j *judge) giveText(u *unnumbered, text string) labelID {
	where := scopeOf(j.origin, u.label)
	id := j.give(label{scope: where, hash: u.hash.in(where), text: text})
	j.registry.budgets.take(j.origin, u.label, u.known)
	j.gates = j.state().load()
	return id
}

// give gives a number.
func (j *judge) give(added label) labelID {
	j.bytes += labelBytes(added.text)
	id := j.registry.budgets.labels.add(added)
	j.registry.repeats.labels.grow(id)
	return id
}
