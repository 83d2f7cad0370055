// Package aggregate counts snapshots. It owns everything between a published slot and a
// sealed cycle: the cycles, the rings and the drainers with their tables, and the seal.
//
// # Data flow
//
//	publisher: Guard.Enter -> Cycle.Admit (first use of a key in an interval) -> slots into a ring ->
//	           Guard.Exit
//	drainer:   ring -> its own table of the slot's cycle
//	sealer:    every interval, and for a report, begins the next cycle, collects the tables of the
//	           last, delivers them whole
//
// An interval is the time between two flushes by the clock, and has one registry of keys.
// A cycle is what is sealed at once: an interval, or the part of one before or after a
// report.
//
// # Threading
//
//   - A table is written by its drainer alone until the seal, and belongs to
//     whoever received the Sealed after it. No lock, no atomic.
//   - What is merged, groups that tracers have counted themselves, is written under
//     its own mutex by publishers that are inside its cycle (Cycle.Merging), and sealed
//     with the tables.
//   - The interval's registry is written by publishers that are inside one of its
//     cycles, by that package's rules. What it gave a number never changes, so the flush
//     reads what a sealed cycle was handed without a lock.
//   - The current cycle's number is written by the sealer alone.
//
// # Why a boundary is exact
//
// A publisher shows in its Guard which cycle it is in, looks again whether that is still
// the current one, and only then admits keys and publishes slots. The sealer first makes
// the next cycle current and then waits until no guard shows the old one. All four steps
// are sequentially consistent atomics, so either the publisher sees the new cycle and
// starts over, or the sealer sees its guard and waits for it. From then on no slot of the
// old cycle can be published any more, and every one that was stands in a ring. A report
// signal behind them makes each drainer empty its ring up to that point before it
// answers. So a batch, which is published within one Enter and Exit, is never split by a
// boundary, and nothing of a sealed cycle is ever late.
//
// Two cycles are in use at once for the length of that wait, never three: the memory of
// cycle n is that of n-2, and the sealer does not begin n before the flush has released
// n-2. Registries take turns by interval.
//
// # Two clocks
//
// The cycle is wall-clock: it decides when keys are admitted and when tables are sealed. The
// bucket is the span's end time. A cycle writes three buckets at most: the one before its own,
// its own, and the next (for spans that end between a boundary and the seal that follows it).
// The publisher picks it, see Window. A span that ended earlier is counted in the oldest
// bucket, and as late; a span that ends after now is counted in the bucket of now, and as
// early. Groups that tracers have counted keep the bucket that their tracer gave them, or the
// agent's slot of it.
//
// # Bounds
//
// A table has at most one row for each key of the interval and bucket of the window
// (registry.Config.MaxKeys), with every drainer, because which one counts a key may change.
// All sketches share Config.SketchBytes; without more, they collapse their lowest bins early,
// and no span is lost. Merged statistics have sketch.MaxMappings mappings and, with their
// rows, a quarter of the sketch memory a cycle. Statistics that find no room there are refused
// whole: their tracer has counted them, so the agent can have them as they are. Nothing that a
// tracer sends can make any of this larger.
package aggregate
