// Package aggregate counts snapshots. It owns everything between a published slot and a sealed cycle: the
// cycles, the rings, the drainers with their tables, and the sealer.
//
// # Data flow
//
//	publisher: Guard.Enter -> Cycle.Admit (first use of a key in an interval) -> slots into a ring ->
//	           Guard.Exit
//	drainer:   ring -> its own table for the slot's cycle
//	sealer:    every interval, and on request: begins the next cycle, collects the tables of the last
//	           one, and delivers them
//
// An interval is the time between two regular seals, and has one registry of keys. A cycle is the unit of
// sealing: an interval, or the part of one before or after a requested flush.
//
// # Concurrency
//
//   - A table is written only by its drainer until the seal, and belongs to the receiver of Sealed after
//     it, without locks or atomics.
//   - Groups that tracers have counted are written by publishers inside the cycle, under a mutex
//     (Cycle.LockGroups), and sealed with the tables.
//   - The interval's registry is written by publishers inside one of its cycles, by the rules of that
//     package. Its entries never change, so exporters read those of a sealed cycle without a lock.
//   - The current cycle's number is written only by the sealer.
//
// # Why a boundary is exact
//
// A publisher stores the cycle that it enters in its Guard, checks that this cycle is still current, and
// only then admits keys and publishes slots. The sealer first makes the next cycle current, then waits
// until no guard contains the old one. All four steps are sequentially consistent atomics, so either the
// publisher sees the new cycle and starts over, or the sealer sees its guard and waits. After that, no
// slot of the old cycle can be published, and all slots of it are in a ring. A signal makes each drainer
// empty its ring up to that point before it answers. So a batch, which is published within one Enter and
// Exit, is never split by a boundary, and no slot of a sealed cycle is ever late.
//
// At most two cycles are in use at the same time, for the duration of that wait: cycle n uses the memory
// of cycle n-2, and the sealer does not begin n before the exporters have released n-2. Registries
// alternate in the same way, per interval.
//
// # Two clocks
//
// Cycles follow the wall clock, which decides when keys are admitted and tables sealed. Buckets follow
// the end times of spans. A cycle writes three buckets at most: the one in which it began, the previous one, and
// the next one (for spans that end between a boundary and the seal after it). The publisher selects it, see
// Window. A span that ended earlier is counted in the oldest bucket, and as late; a span that ends in the
// future is counted in the current bucket, and as early. Groups counted by tracers keep their tracer's
// bucket, or the agent's slot for it.
//
// # Limits
//
// A table has at most one row per key of the interval and bucket of the window (registry.Config.MaxKeys),
// for each drainer, because the drainer of a key can change. All sketches share Config.SketchBytes. When
// that is used up they collapse their lowest bins early, and no span is lost. Merged groups have at most
// sketch.MaxMappings mappings and take, with their rows, at most a quarter of the sketch memory per cycle.
// Groups beyond that are rejected as a whole: their tracer has counted them already, so they can be sent
// to the agent unchanged. Nothing that a client sends can exceed these limits.
package aggregate
