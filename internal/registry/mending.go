package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// What a tracer calls a label may have to be mended before it is what the statistics show. In
// a flood that is work in vain: nearly every label collapses, whatever it would have become. So
// a Lookup is given labels as they came. Those of a key that probably never comes again it
// mends only where that may lead to a number:
//
//	a label                             is
//	has a number as it came             normal, as all are that have one
//	was mended before, and had a        mended (spellings)
//	number then
//	has no number, and its gate
//	  asks for sights                   mended if it came before; else it waits as it came
//	  is shut                           mended one time in sixteen, or collapses as it came
//	  is open, or keeps places          mended
//
// So a value that is not normal needs one sight more than others to get its first number. Once it has
// one it is mended at each coming, in this interval and in the next, so that it keeps it. Only a
// new spelling of a value that has a number may have to come some times before it is known to be
// that value: in keys that come once, behind a gate that is shut.
//
// Spellings are a small filter of two generations, as the sights are. A label that is wrongly
// taken for one costs its mending.

const (
	spellingPairs = 1 << 10
	spellingBytes = spellingPairs * 8 // of a generation
)

// mustMend says whether the label that is judged may not be normal yet.
func (j *judge) mustMend() bool { return j.mender != nil && !j.isMended }

// asItCame judges a label that has no number as it came, if that needs no mending. Its number
// belongs at the next of the words.
func (j *judge) asItCame(l span.Label, place int, tagKey labelID, gate height, text string) (id labelID, ok bool) {
	isShut := gate == shut
	switch asks := gate.asks(); {
	case !j.isOnce, isShut && j.dice>>60 == 0, !isShut && !asks.looksAtSights():
		return absentID, false
	case tagKey >= freshID, !l.Fits(text), j.isSpelling(l, text):
		return absentID, false
	case isList(l) || !j.folder.isAsked(l):
	case j.folder.needs(j.identity, l):
		return absentID, false
	default:
		j.folder.asked(l) // of what teaches nothing
	}
	switch {
	case isShut && isList(l):
		return j.loseTag(l, tagKey), true
	case isShut:
		return j.lose(l), true
	}
	j.undecided = append(j.undecided, unnumbered{
		hash: textHash(text), tagKey: tagKey, at: uint32(len(j.words)), place: uint8(place), isAsItCame: true, label: l, gate: gate.asks(),
	})
	u := &j.undecided[len(j.undecided)-1]
	u.spot = j.registry.sights.spotOf(j.identityOf(u))
	return absentID, true
}

// decideAsItCame decides what becomes of a label that was left so.
func (j *judge) decideAsItCame(u *unnumbered) labelID {
	if u.known = j.sight(u.gate, u.came, j.identityOf(u)); u.known == firstSight {
		return j.decideKnown(u, "")
	}
	text := *j.of.At(u.label, int(u.place))
	normal := j.mender.Label(u.label, text, j.lang)
	if normal == text {
		return j.decideKnown(u, "")
	}
	j.unplaced = append(j.unplaced, u.spot) // or it would not be known the next time
	return j.mended(u.label, int(u.place), text, normal)
}

// mended judges a label by what it was mended to, and leaves that in the key.
func (j *judge) mended(l span.Label, place int, spelling, normal string) (id labelID) {
	*j.of.At(l, place) = normal
	j.isMended, j.anyMended = true, true
	if isList(l) {
		id = j.tag(l, place, normal)
	} else {
		id = j.text(l, normal)
		j.numbered = j.numbered.Without(l) // as it came it has none
	}
	j.isMended = false
	if id >= freshID || id >= firstID && !j.registry.budgets.labels.at(id).isBlocked {
		j.noteSpelling(l, spelling)
	}
	return id
}

// noteSpelling notes that a label was mended to one that has a number, or gets one.
func (j *judge) noteSpelling(l span.Label, text string) {
	if at, ok := j.spelling(l, text); ok {
		j.registry.spellings.add(j.registry.generation, at)
	}
}

// isSpelling says whether a label may be one that was noted so, in this interval or in the last.
func (j *judge) isSpelling(l span.Label, text string) bool {
	spellings := j.registry.spellings
	if len(text) >= filterEnd && spellings.isEmpty() {
		return false
	}
	at, ok := j.spelling(l, text)
	if !ok {
		return true
	}
	came := spellings.has(j.registry.generation, at)
	return came.inThis || came.inOther
}

// spelling is where the spellings have a label. Texts that are too short have no place.
func (j *judge) spelling(l span.Label, text string) (at spot, ok bool) {
	if len(text) < filterEnd {
		return spot{}, false
	}
	return j.registry.spellings.spotOf(endHash(j.identity+uint64(l), text)), true
}
