package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// unnumbered is a label of the judged key that was searched for, and has no number. What
// becomes of it is decided when all labels of the key were searched for: its sights lie where
// nobody has looked for long, and a processor waits for those of all labels at once if it is
// asked for them one behind the other.
type unnumbered struct {
	hash   hashedText
	tagKey labelID // of a tag, the number of its tag key or what stands for it
	at     uint32  // of the words, where its number belongs
	label  span.Label
	gate   sight
	came   came
	known  sight
}

func (j *judge) identityOf(u *unnumbered) uint64 { return u.hash.identity(j.identity, int(u.label)) }

// later leaves a label to be decided; where numbers are given, that is at once. It returns the
// label's number as far as there is one.
func (j *judge) later(u unnumbered, text string) labelID {
	if !j.gives {
		j.undecided = append(j.undecided, u)
		return absentID
	}
	u.came = j.came(u.gate, j.identityOf(&u))
	return j.decide(&u, text)
}

// decideAll decides what becomes of all labels that have no number.
func (j *judge) decideAll() {
	for i := range j.undecided {
		u := &j.undecided[i]
		u.came = j.came(u.gate, j.identityOf(u))
	}
	for i := range j.undecided {
		u := &j.undecided[i]
		j.words[u.at] = j.decide(u, "")
	}
}

// decide passes a label or lets it collapse. It needs the text where numbers are given.
func (j *judge) decide(u *unnumbered, text string) labelID {
	identity, isTag := j.identityOf(u), isList(u.label)
	u.known = j.sight(u.gate, u.came, identity)
	switch passes := j.pass(u.gate, u.known, identity); {
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
func (j *judge) pass(gate, known sight, identity uint64) (passes bool) {
	switch passes = known >= gate; {
	case !passes:
		j.waits = j.waits || j.mayWait(gate)
	case gate != firstSight:
		j.known = max(j.known, known)
	}
	if gate < repeated && !(j.gives && passes) {
		j.unplaced = append(j.unplaced, identity)
	}
	return passes
}

// came is what the sights say of a value, if the gate asks for it.
func (j *judge) came(gate sight, identity uint64) came {
	if r := j.registry; gate == cameAgain || gate == cameBefore {
		return r.sights.has(r.generation, identity)
	}
	return came{}
}

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
	return max(j.sight(gate, j.came(gate, identity), identity), min(j.known, cameBefore))
}
