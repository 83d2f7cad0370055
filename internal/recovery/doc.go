// Package recovery owns the running file: what a daemon that is killed leaves for the next one.
//
// The file lies beside the socket for as long as its daemon has spans that are in no other's
// books. Its daemon holds a lock on it, which the kernel gives back however the daemon ends: so a
// file that nobody locks is of a daemon that died. It is mapped, and holds no span and no key, but
// how far the daemon was:
//
//   - of each cycle: whether destinations have nothing of it, may have some, or it is settled; and
//     by door, how many of its spans nobody else has any more;
//   - of each connection: which of its spans lie in which cycles (Settling).
//
// The next daemon reads it (Dead). To a client that comes back with the token of its connection it
// says which of its spans are settled, doubtful, or to be handed over again (Earlier); the rest it
// counts as lost (Losses). A dead file stays for a while under another name, because a client may
// come back after that daemon was killed as well; each reader gives the same answers. It gets that name
// once it was said (Said): who is killed before has counted nothing, and the next one does.
//
// Threading: each word of the file is stored atomically, by one writer or under one lock. A kill
// stops all threads somewhere between two stores, and what was stored stays. So the order of the
// stores is what makes the file readable, and each function that stores more than one word says
// which order that is. The rule above all: a span is in the file before its cycle can be sealed,
// a cycle is doubtful before the first byte of it is sent, and it is settled in the file before
// anybody is told so.
//
// Where the file can't be mapped, the same words lie in memory of this process: all goes on, only
// the next daemon knows nothing, and clients are told no token.
//
// Bounds: mostCycles cycles, as many connections as the daemon takes, and mostKept dead files of
// keptFor at most. All memory is taken from the file system at the start, so no store can fail.
package recovery
