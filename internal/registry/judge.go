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
type judge struct {
	registry   *Registry
	origin     OriginID
	identity   uint64   // of the origin, the same in every interval
	left       heritage // of the origin from the last interval
	isRetry    bool     // the batch was judged before: what came with it does not come again
	last       [span.FirstList]found
	tagKeys    [lists][fewTags]found
	lastStatus foundStatus
	digits     [10]byte
	folder     *folder

	// Of the key that is judged:
	gates     gates // read before anything is searched for
	gives     bool  // numbers to what is fresh
	words     []uint32
	fresh     []hashedText // hashes of the texts of what has no number yet, see freshID
	bytes     int          // of what got a number
	unplaced  []uint64     // identities of labels that have no place
	waits     bool         // it may get more when it comes again
	known     sight        // of its labels that had to be known, what is known of the best
	collapsed Collapsed
	lostBy    lostLabels // those that collapsed
	freshBy   lostLabels // those that are fresh, and lost where there is no row
	losses    losses     // of all keys, not yet reported
}

// found is a text that was found. Types and kinds repeat even in a flood, and so do tag
// keys, each at its place in the list.
type found struct {
	text string // the Registry's own
	id   labelID
}

// fewTags is of how many places in a list the tag key that was found is kept.
const fewTags = 16

// freshID and what follows are in the place of numbers that labels don't have yet.
const freshID labelID = 1 << 31

// outcome is what a judge says of a label.
type outcome uint8

const (
	named     outcome = iota // it has a number, or needs none
	passed                   // it has none, and may get one
	collapsed                // it has none, and gets none this time
)

// begin makes it one of an origin, whose identity can be had under the Registry's lock alone.
func (j *judge) begin(r *Registry, origin OriginID, identity uint64) {
	*j = judge{
		registry: r, origin: origin, identity: identity,
		folder: j.folder, words: j.words, fresh: j.fresh, unplaced: j.unplaced, lostBy: j.lostBy, freshBy: j.freshBy, losses: j.losses,
	}
	if j.folder == nil {
		j.folder = &folder{}
	}
	j.folder.templates = r.templates
	j.left = r.past.of(j.identity)
}

// state is what is published of the origin's budgets.
func (j *judge) state() *publishedGates { return &j.registry.budgets.published[j.origin] }

// key judges a whole key.
func (j *judge) key(k *span.Key) {
	j.gates = j.state().load() // before anything is searched for
	j.words = beginWords(j.words[:0], j.origin, k)
	j.fresh, j.unplaced, j.bytes, j.waits, j.collapsed = j.fresh[:0], j.unplaced[:0], 0, false, 0
	j.known = firstSight
	j.folder.begin()
	j.lostBy.clear()
	j.freshBy.clear()
	j.status(k.HTTPStatus)
	for l := range span.FirstList {
		text := *k.Text(l)
		if text == "" {
			j.words = append(j.words, absentID)
			continue
		}
		id, is := j.text(l, text)
		switch is {
		case passed:
			j.freshBy.labels = append(j.freshBy.labels, l)
		case collapsed:
			j.collapsed |= setOf(l)
			j.lostBy.labels = append(j.lostBy.labels, l)
		}
		j.words = append(j.words, id)
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		j.tags(l, *k.Tags(l))
	}
}

// text judges a text.
func (j *judge) text(l span.Label, text string) (labelID, outcome) {
	last, gate := &j.last[l], j.gates.of(l)
	if gate == firstSight && text == last.text {
		return last.id, named
	}
	if id, ok := j.lookUp(l, text); ok {
		*last = found{j.registry.budgets.labels.at(id).text, id}
		return id, named
	}
	if text == span.Blocked {
		// The tracer has budgets too. What it collapsed meets what we do.
		return blockedID, named
	}
	if name, ok := j.fold(l, text); ok {
		if id, ok := j.lookUp(l, name); ok {
			return id, named
		}
		text = name
	}
	return j.newValue(l, text)
}

func (j *judge) lookUp(l span.Label, text string) (labelID, bool) {
	return j.registry.budgets.labels.lookUp(scopeOf(j.origin, l), text)
}

// newValue judges a value that has no number, by the gate of its label.
func (j *judge) newValue(l span.Label, text string) (labelID, outcome) {
	gate := j.gates.of(l)
	if gate == repeated && j.left.values[l] == 0 {
		return j.instead(l), collapsed // whatever it is
	}
	hash, where := textHash(text), scopeOf(j.origin, l)
	known, is := j.pass(gate, hash.identity(j.identity, int(l)))
	if is == collapsed {
		return j.instead(l), collapsed
	}
	if !j.gives {
		return j.freshOne(hash), passed
	}
	id := j.give(label{scope: where, hash: hash.in(where), text: text})
	j.registry.budgets.take(j.origin, l, known)
	j.gates = j.state().load()
	return id, passed
}

// fold returns the name that a template gives a text without a number, unless the text
// repeated in the last interval: then its place is kept.
func (j *judge) fold(l span.Label, text string) (name string, ok bool) {
	if !j.folder.isAsked(l) {
		return "", false
	}
	name, ok = j.folder.name(j.identity, l, text)
	if !ok || j.registry.past.known.find(textHash(text).identity(j.identity, int(l))) == repeated {
		return "", false
	}
	j.folder.labels |= setOf(l)
	return name, true
}

// instead is what a text becomes that gets no number, nor does its name: it collapses, and
// teaches what varies.
func (j *judge) instead(l span.Label) labelID {
	if j.folder.isAsked(l) {
		j.folder.sees(l)
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

// give gives a number.
func (j *judge) give(added label) labelID {
	j.bytes += labelBytes(added.text)
	id := j.registry.budgets.labels.add(added)
	j.registry.repeats.labels.grow(id)
	return id
}
