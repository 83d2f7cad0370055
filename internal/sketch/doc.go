// Package sketch keeps distributions of durations, bin for bin those of the agent. It
// knows nothing of spans, keys or cycles.
//
// # What it owns
//
//   - Mapping: which durations a bin holds. The agent's own is a table; those of tracers
//     that count themselves come with their sketches.
//   - Grid: into which cells durations are counted, so that whoever reads them has exact
//     counts: the agent's bins, or cells that end at the bounds of a Histogram too, and of classic buckets.
//   - Store: the small, growing form in which one drainer counts one aggregate. It refers
//     to pages of its table's Arena, which takes them from the one Memory.
//   - Sketch: the large, flat form in which the flush adds up the stores of one key for the
//     agent, and whose bins it reads. Only here is anything collapsed, as the library does it.
//   - Histogram: the same for OpenTelemetry, a base-2 exponential histogram of seconds.
//   - Classic: the same by upper bounds that an operator chose.
//
// # Threading
//
// Memory may be used by anybody. An Arena and its stores have one writer at a time, the
// owner of their table, and no lock; so have a Sketch, a Histogram and a Classic. A Grid never changes.
//
// # Bounds
//
// All arenas together take at most the bytes that NewMemory was given, in chunks of
// ChunkBytes; a store itself has a fixed size. Without memory, a store collapses its
// lowest cells early and counts that (Memory.Coarsened): no span is lost, and the high
// percentiles stay exact. A Sketch has room for every bin that a Mapping may have
// (Mapping.Range), and a Histogram for every duration. A Classic has at most MaxBounds.
package sketch
