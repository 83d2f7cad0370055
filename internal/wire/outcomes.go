package wire

import "iter"

// MaxToken bounds Welcome.Token, in bytes.
const MaxToken = 64

// Outcome is what became of a span that a client handed over to a daemon that died.
type Outcome uint64

const (
	Settled  Outcome = iota // the daemon has delivered it, or has said in its books why not
	Doubtful                // a destination may have it
	Again                   // no destination has it: the client is to hand it over again
)

// AppendOutcome appends that the spans up to the one of that number have that outcome. Numbers
// count from the connection's first span on; they rise.
func AppendOutcome(dst []uint64, upTo uint64, what Outcome) []uint64 {
	return append(dst, upTo, uint64(what))
}

// Outcomes goes through a list of outcomes. Spans behind the last one are to be handed over again,
// as are those of an outcome that is not known here.
func Outcomes(list []uint64) iter.Seq2[uint64, Outcome] {
	return func(yield func(upTo uint64, what Outcome) bool) {
		for ; len(list) >= 2; list = list[2:] {
			if !yield(list[0], min(Outcome(list[1]), Again)) {
				return
			}
		}
	}
}
