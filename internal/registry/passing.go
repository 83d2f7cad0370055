package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// unnumbered is a label of the judged key that was searched for, and has no number. What
// becomes of it is decided when all labels of the key were searched for: its sights lie where
// nobody has looked for long, and a processor waits for those of all labels at once if it is
// asked for them one behind the other, with little to do between.
type unnumbered struct {
	hash       hashedText
	spot       spot    // in the sights
	tagKey     labelID // of a tag, the number of its tag key or what stands for it
	at         uint32  // of the words, where its number belongs
	place      uint8   // of a tag, in its list
	isAsItCame bool    // it was not mended
	label      span.Label
	gate       sight
	came       came
	known      sight
}

// identityOf is the hash of a label that is the same in every interval.
func (j *judge) identityOf(u *unnumbered) uint64 { return u.hash.identity(j.identity, int(u.label)) }

// later leaves a label to be decided; where numbers are given, or it was mended, that is at once. It returns the
// label's number as far as there is one.
func (j *judge) later(l span.Label, tagKey labelID, gate sight, at int, text string) labelID {
	n := len(j.undecided)
	j.undecided = append(j.undecided, unnumbered{hash: textHash(text), tagKey: tagKey, at: uint32(at), label: l, gate: gate})
	u := &j.undecided[n]
	u.spot = j.registry.sights.spotOf(j.identityOf(u))
	if !j.gives && !j.isMended {
		return absentID
	}
	j.undecided = j.undecided[:n] // for it is decided here
	u.came = j.came(gate, u.spot)
	return j.decide(u, text)
}

// decideAll decides what becomes of all labels that have no number.
func (j *judge) decideAll() {
	j.lookAtSights()
	for i := range j.undecided {
		u := &j.undecided[i]
		if u.isAsItCame {
			j.words[u.at] = j.decideAsItCame(u)
		} else {
			j.words[u.at] = j.decide(u, "")
		}
	}
}

// lookAtSights notes of all these labels what the sights say of them.
func (j *judge) lookAtSights() {
	pairs, now := j.registry.sights.pairs(), j.registry.generation
	if pairs == nil {
		return
	}
	for i := range j.undecided {
		if u := &j.undecided[i]; u.gate.looksAtSights() {
			u.came = u.spot.cameIn(&pairs[u.spot.pair], now)
		}
	}
}

// decide passes a label or lets it collapse. It needs the text where numbers are given.
func (j *judge) decide(u *unnumbered, text string) labelID {
	u.known = j.sight(u.gate, u.came, j.identityOf(u))
	return j.decideKnown(u, text)
}

// decideKnown is decide for a label of which it is said what is known.
func (j *judge) decideKnown(u *unnumbered, text string) labelID {
	isTag := isList(u.label)
	switch passes := j.pass(u.gate, u.known, u.spot); {
	case !passes && isTag:
		return j.loseTag(u.label, u.tagKey)
	case !passes:
		return j.lose(u.label)
	case j.gives && isTag:
		return j.giveTag(u, text)
	case j.gives:
		return j.giveText(u, text)
	case !isTag:
		j.freshBy.labels = append(j.freshBy.labels, u.label)
	case u.tagKey < freshID:
		j.freshBy.tags = append(j.freshBy.tags, j.registry.budgets.labels.at(u.tagKey).tagKey)
	}
	return j.freshOne(u.hash)
}

// pass says whether a value that has no number passes a gate, being known so well.
func (j *judge) pass(gate, known sight, at spot) (passes bool) {
	switch passes = known >= gate; {
	case !passes:
		j.waits = j.waits || j.mayWait(gate)
	case gate != firstSight:
		j.known = max(j.known, known)
	}
	if gate < repeated && !(j.gives && passes) {
		j.unplaced = append(j.unplaced, at)
	}
	return passes
}

// came is what the sights say of a value, if the gate asks for it.
func (j *judge) came(gate sight, at spot) came {
	if r := j.registry; gate.looksAtSights() {
		return r.sights.has(r.generation, at)
	}
	return came{}
}

// looksAtSights says whether a gate asks for what the sights say.
func (gate sight) looksAtSights() bool { return gate == cameAgain || gate == cameBefore }

// sight is what is known of a value, or of a key, as far as the gate asks for it. Of an
// origin that was not there nothing can have come before, so what comes again is as good.
func (j *judge) sight(gate sight, came came, identity uint64) sight {
	r := j.registry
	if came.inOther || gate == firstSight || gate == repeated || j.isRetry || !r.past.isInSights {
		if known := r.past.known.find(identity); known != firstSight {
			return known
		}
	}
	switch {
	case j.isRetry:
		return firstSight
	case came.inOther:
		return cameBefore
	case !came.inThis:
		return firstSight
	case j.isNew:
		return cameBefore
	}
	return cameAgain
}

// rowSight is what is known of the judged key as a whole. Where one of its labels has waited,
// the key had another name meanwhile, so it is known as well as that label.
func (j *judge) rowSight(identity uint64, gate sight) sight {
	came := j.came(gate, j.registry.sights.spotOf(identity))
	return max(j.sight(gate, came, identity), min(j.known, cameBefore))
}
