package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// Budgets is the number of distinct values that each label may have, an origin and
// interval. Of a list of tags it is that of each tag key.
type Budgets [span.LabelCount]int

// DefaultBudgets are those of the table of labels.
func DefaultBudgets() (b Budgets) {
	for l := range span.WholeKey {
		b[l] = l.Budget()
	}
	return b
}

// MaxTagKeys bounds the distinct tag keys that one origin can have budgets for, in
// each of the two lists. Tags beyond it collapse whole, key and all, since their
// keys are then what is unbounded.
const MaxTagKeys = 64

// familiarity is how well a value, or a whole key, is known when it comes.
type familiarity uint8

const (
	unknown    familiarity = iota
	cameAgain              // it came before in this interval
	cameBefore             // it came in the last one
	repeated               // it had a place in the last one, and came again there
)

// budget is the places for the values of one label, or for the tags of one tag key.
type budget struct {
	limit  int
	kept   int // for what repeated in the last interval
	others int // taken by what did not
}

// gate is how well a value must be known to get a place.
func (b *budget) gate() familiarity { return gateOf(b.others, b.kept, b.limit) }

func (b *budget) take(known familiarity) {
	if known != repeated {
		b.others++
	}
}

// giveBack is the opposite of take.
func (b *budget) giveBack(known familiarity) {
	if known != repeated {
		b.others--
	}
}

// gateOf is the gate before a budget:
//
//	gate        open to                                while what is taken, and what is kept
//	                                                   for values that repeated, is less than
//	unknown     whatever comes                         half of the budget; and a sixteenth of
//	                                                   it is open so in any case
//	cameAgain   what came before in this interval,     three quarters
//	            or in the last
//	cameBefore  what came in the last                  all
//	repeated    what had a place in the last, and      for ever: its place is kept
//	            came again there
//
// So values that come once get half of what nobody needs, values that come some times and
// never again a quarter more, and what keeps coming all of it. A gate only rises until the
// interval ends.
func gateOf(others, kept, limit int) familiarity {
	switch taken := others + kept; {
	case taken >= limit:
		return repeated
	case taken < (limit+1)/2, others < (limit+15)/16:
		return unknown
	case taken < limit-limit/4:
		return cameAgain
	}
	return cameBefore
}
