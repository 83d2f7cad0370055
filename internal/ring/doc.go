// Package ring implements a bounded queue of slots with multiple producers and one consumer. It does not
// interpret the slots, which contain no pointers.
//
// # Protocol
//
// Positions count slots and never decrease. The index of a slot is its position modulo the size of the ring.
// Producers and consumer share three things:
//
//	tail   end of the claimed positions     written by producers: one compare-and-swap per run
//	word   one per slot                     written by the producer of a run: one store per run
//	head   start of the positions in use    written by the consumer: one store per turn
//
// A producer claims a run: it moves the tail forward by the length of the run, if the run then ends within one
// ring size of the head. It fills the slots, and publishes all of them with one store to the word of the first
// slot. The word contains the lap and the length of the run, and whether the run is skipped.
//
// The consumer reads the word at the position where the next run must begin. If the word has the current lap,
// the run is published. The consumer reads the slots and continues with the next run. At the end of a turn it
// frees all consumed slots with one store to the head.
//
// # Correctness
//
// Go's atomics are sequentially consistent, and order all other reads and writes around them.
//
//   - No two producers own a slot at the same time. Only one compare-and-swap moves the tail over a position.
//     The tail passes the slot again only after the head has.
//   - No slot is read before it is written. Its producer writes it before the store of the word, and the consumer
//     reads it after it has seen this word. A word of an earlier lap is not mistaken for it, because a word
//     contains its lap. Words are never cleared, so no second store must be ordered. At the first slot of a
//     run, only the word of this run can have the current lap, because runs of one lap do not overlap.
//   - No slot is overwritten before it is read. The consumer stores the head after it has read the slots, and a
//     producer writes after it has seen that head. Producers cache the head in freed. An outdated copy can only
//     reject a claim, and then the producer reads the head itself.
//   - The order of each producer is kept, because its claims have ascending positions.
//   - The consumer never waits for long. A producer publishes or skips a claimed run without blocking, and
//     Abandon skips it after a panic.
//
// # Sleep
//
// A consumer without work sets a flag (sleepState), checks for work once more, and sleeps. A producer stores its word
// and then reads the flag. All stores have one order. So either the last check of the consumer sees the word, or
// the producer sees the flag. In the second case, the producer that resets the flag sends the token that ends
// the sleep. No wake is lost, so a sleep needs no timeout, and an idle ring costs nothing.
//
// The first sleep after work is a nap of a millisecond. The flag of a nap means that only a signal, or a backlog
// of a quarter of the ring, wakes the consumer. A smaller backlog waits for the end of the nap. So under load the
// cost of a wake is shared by thousands of slots, and the consumer does not read the cache lines that producers are
// writing. No wake is lost in this case either: the tail moves before the word is stored, and the consumer checks
// both after it has set the flag. Naps that end without work are soon skipped, see idlePolicy.
//
// # Signals
//
// The signals Report, Stop and Clear are separate from the data. Report and Stop record the tail when they are sent,
// and are delivered when the consumer has reached this position, after all slots claimed earlier. Clear is
// delivered immediately.
//
// # Verification
//
// The directory model contains the protocol in Promela. Spin checks every interleaving of a small ring, and finds
// an error in each of several mutants. In module test/ring, porcupine checks recorded histories of this code.
//
// # Limits
//
// New allocates all memory: the slots, and 8 bytes per slot for its word. A claim that does not fit is rejected
// as Full. A claim that loses claimAttempts races is rejected as Contended. At most signalDepth signals are
// pending. Only the consumer waits.
package ring
