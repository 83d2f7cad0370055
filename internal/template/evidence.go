package template

import "math/bits"

// How many distinct fills a blank must have been seen with. Those of a bitmap are counted
// by the bits that they set, which are never more.
const (
	enoughStrong = 8
	enoughFair   = 16
	enoughWeak   = 64
	// Weak fills vary too where so many better ones do: a table has an early row.
	enoughWeakBeside = 16
	enoughBeside     = 48

	// A blank whose fills came more often than this, on average, does not vary.
	mostRepeats = 4
)

// evidence is what was seen at one blank.
type evidence struct {
	seen  [2]uint64         // a bitmap of distinct fills
	count [strong + 1]uint8 // of the fills that set a bit, by worth
}

func (e *evidence) note(f mark) {
	bit := uint64(1) << (f.hash & 63)
	if word := &e.seen[f.hash>>6&1]; *word&bit == 0 {
		*word |= bit
		e.count[f.worth]++
	}
}

// distinct is at most how many distinct fills were seen.
func (e *evidence) distinct() int { return bits.OnesCount64(e.seen[0]) + bits.OnesCount64(e.seen[1]) }

// verdict is which fills vary, if any, after so many sights. A blank may need more.
func (e *evidence) verdict(sights int) (least worth, isDecided bool) {
	distinct := e.distinct()
	repeats := sights >= mostRepeats*distinct
	switch better := e.count[fair] + e.count[strong]; {
	case !repeats && e.count[weak] >= enoughWeak, e.count[weak] >= enoughWeakBeside && better >= enoughBeside:
		return weak, true
	case !repeats && e.count[fair] >= enoughFair:
		return fair, true
	case e.count[strong] >= enoughStrong:
		return strong, true
	}
	return 0, repeats
}
