// Package ring is a bounded queue of flat slots, from many producers to one
// consumer. It owns the slots and the cursors, and knows nothing of what the
// slots mean.
//
// # The protocol
//
// Positions count slots and never go back; a slot's index is its position
// modulo the size. Three things are shared:
//
//	tail   end of what is claimed    producers, one compare-and-swap a run
//	word   of each slot              the producer of the run that begins there, one store
//	head   start of what is in use   the consumer, one store a turn
//
// A producer claims a run: it moves the tail forward by the run's length if that
// leaves the run within one ring's length of the head. It fills the slots, and
// publishes them all with one store to the word at the run's first slot, which
// says the run's lap, its length and whether it is to be skipped. The consumer
// looks at the word where the next run must begin. If it is of this lap, the run
// is there; it reads the slots, goes on to the next, and in the end frees all of
// them with one store to the head.
//
// # Why it is right
//
// Go's atomics are sequentially consistent, and order the other reads and writes
// around them.
//
//   - No two producers have a slot at once: only one compare-and-swap moves the
//     tail over a position, and over it again only after the head has passed it.
//   - No slot is read before it is written: the slots of a run are written before
//     the store of its word, and read after that word was seen. A word of an
//     earlier lap is not taken for it, since it names its lap; words are never
//     cleared, so there is no second store to order. Where a run begins, no word
//     of this lap can stand but the run's own: runs of one lap do not overlap.
//   - No slot is overwritten before it was read: the consumer reads before it
//     stores the head, and a producer writes after it has seen that head. The
//     producers' own copy of the head (freed) may be old, and an old one only
//     refuses; then the head itself is asked.
//   - Each producer's order is kept: its claims take rising positions.
//   - The consumer is never stuck for long: a claimed run is published or skipped
//     by straight-line code of its producer, and Abandon does it after a panic.
//
// # Waiting
//
// A consumer that finds nothing raises a flag, looks once more, and sleeps. A producer stores
// its word and then looks at the flag. All stores have one order, and one of these two is
// first in it. So either the consumer's last look sees the word, or the producer sees the
// flag; then the producer, and nobody else, takes the flag down and sends the one token that
// ends the sleep. No wake is lost, so a sleep needs no time-out, and an idle ring costs
// nothing.
//
// The first sleep after work is a nap of a millisecond. Its flag says that only a signal,
// or a quarter of the ring, is worth a wake; what is less waits for the nap to be over.
// So under load a wake is paid once in some thousand slots, and the consumer does not
// take the lines that producers are writing. It loses no wake either: the tail moves
// before the word is stored, and the consumer looks at both after raising the flag.
// Naps that end without work are soon skipped, see idle.
//
// # Signals
//
// Report, stop and clear go past the data, at most 16 of them at a time. Report
// and stop note the tail when they are sent and are delivered when the consumer
// has got there: what was claimed before comes before them. Clear comes at once.
//
// # Beside the argument
//
// The folder model has the protocol in Promela, where spin tries every
// interleaving of a small ring, and sees each of several mutants fail. The module
// test/ring has porcupine check recorded histories of the real one.
//
// # Bounds
//
// All memory is set aside by New: the slots, and 8 bytes for each one's word.
// Nothing is allocated afterwards. A claim that does not fit is refused as Full;
// one that lost 128 races as Contended. Nothing waits but the consumer.
package ring
