// Package daemon assembles the rooms into one program. It is the only place
// that knows all of them, and it knows of each only how to make, start and stop
// it. It counts nothing and decides nothing about a span.
//
// # Start, in the order of the data's way, last first
//
//  1. flush, so that a sealed cycle has somewhere to go
//  2. aggregate, so that a published slot is counted
//  3. ingest, so that the socket exists only when what it takes is counted
//  4. apm and otlp, where they are on, so that traces are counted from the first one on
//  5. health says ready, and the service manager, if there is one, is told
//
// Everything that can be refused (an address, a socket, a size) is refused while
// making, before a tracer could have written anything.
//
// # Stop, in the order of the data's way, first first
//
//  1. health says not ready: nobody new is sent here; the service manager is told
//  2. apm and otlp, side by side, stop accepting and let the requests that are here come to
//     their end, within a quarter of the grace; a tracer that comes later waits in a socket that
//     was given, and else finds none and keeps its traces for the next try, or goes
//     without
//  3. ingest stops accepting, closes its read sides and reads what was written
//     before that to the last byte; each tracer is told why with its connection's
//     end. Exclusion is the guarantee: after this step nothing can be published
//     any more
//  4. aggregate's balancer ends: what is routed nowhere any more needs no levelling.
//     It could end at any moment, for nobody waits for it and it waits for nobody
//  5. aggregate seals the last cycle, the open bucket included. Its drainers empty
//     their rings up to that and end. That is politeness; the guarantee was 3
//  6. flush sends everything that it holds, and counts what it can't as unsent
//  7. ingest's last answers to tracers end
//  8. the books are logged, and health closes, last, so that they could be scraped
//
// One deadline, the grace, bounds all of it, and reading may use half of it, so
// that the agent is always given some. A step that runs out of its time says so,
// counts what is left under the reason "shutdown", and the later ones still run.
package daemon
