package registry

// pass judges a value that has no number by what is known of it.
func (j *judge) pass(gate sight, identity uint64) (known sight, is outcome) {
	if gate != firstSight || j.gives {
		known = j.sight(identity, gate)
	}
	switch {
	case known < gate:
		is, j.waits = collapsed, j.waits || j.mayWait(gate)
	case gate != firstSight:
		is, j.known = passed, max(j.known, known)
	default:
		is = passed
	}
	if gate < repeated && !(j.gives && is == passed) {
		j.unplaced = append(j.unplaced, identity)
	}
	return known, is
}

// sight is what is known of a value, or of a key, as far as the gate asks for it. Of an
// origin that was not there nothing can have come before, so what comes again is as good.
func (j *judge) sight(identity uint64, gate sight) sight {
	past := j.registry.past
	switch known := past.known.find(identity); {
	case known != firstSight || gate == firstSight || gate >= repeated || j.isRetry:
		return known
	case past.sights.has(identity):
		return cameBefore
	case !j.registry.sights.has(identity):
		return firstSight
	case j.left.isNew:
		return cameBefore
	}
	return cameAgain
}

// rowSight is what is known of the judged key as a whole. Where one of its labels has waited,
// the key had another name meanwhile, so it is known as well as that label.
func (j *judge) rowSight(identity uint64, gate sight) sight {
	return max(j.sight(identity, gate), min(j.known, cameBefore))
}
