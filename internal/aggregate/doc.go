// Package aggregate counts snapshots. It owns everything between a published
// slot and a sealed cycle: the cycles and their registries, the budgets, the
// routing, the drainers with their tables, and the seal.
//
// # Data flow
//
//	ingest: Reader.Enter -> Cycle.Admit (first use of a key in an interval) -> slots into a ring -> Reader.Exit
//	drainer: ring -> its own table of the slot's cycle
//	sealer: every interval, and for a report, opens the next cycle, collects the tables of the last, hands them on whole
//
// # Who may write what
//
//   - A table is written by its drainer alone until the seal, and belongs to
//     whoever received the Sealed after it. No lock, no atomic.
//   - What is merged, groups that tracers have counted themselves, is written under
//     its own mutex by readers that are inside its cycle (Cycle.Merging), and sealed
//     with the tables.
//   - A registry is written under its own mutex by readers that are inside a cycle
//     of its interval. That is the miss path: once a key, an interval and a
//     connection. What it gave a number never changes, so the flush reads what a
//     sealed cycle was handed without it, and a Glance admits a key that changes
//     nothing, as nearly all of a flood do.
//   - The current cycle's number is written by the sealer alone.
//   - The routing is written by the balancer alone, and each value of it never.
//
// # Routing
//
// Which drainer counts a key is a matter of load only, never of correctness: every
// drainer has a table that any key may stand in, and the flush merges rows by key.
// So a change of the routing is one store of one pointer. A publisher that still
// has the old value publishes by it, and nothing is wrong; nobody is asked to stop,
// nothing is handed over, and there is nothing to wait for. That is also why the
// balancer may be a goroutine that knows neither drainers nor rings.
//
// # Why a boundary is exact
//
// A reader publishes the cycle that it is in (Enter), looks again whether that
// is still the current one, and only then admits keys and publishes slots. The
// sealer first makes the next cycle current and then waits until no reader
// shows the old one. All four steps are sequentially consistent atomics, so
// either the reader sees the new cycle and starts over, or the sealer sees the
// reader and waits for it. From then on no slot of the old cycle can be
// published any more, and every one that was stands in a ring. A report signal
// behind them makes each drainer empty its ring up to that point before it
// answers. So a batch, which is published within one Enter and Exit, is never
// split by a boundary, and nothing of a sealed cycle is ever late.
//
// Two cycles are open at once for the length of that wait, never three: the
// tables of cycle n are those of n-2, and the sealer does not open n before the
// flush has released n-2. Registries take turns by interval, see intervals.
//
// # Two clocks
//
// The cycle is wall-clock: it decides when keys are admitted and when tables
// are sealed. The bucket is the span's end time. A cycle writes three buckets at
// most: the one before its own, its own, and the next (for spans that end
// between a boundary and the seal that follows it). The publisher picks it, see Window,
// so that a span's end need not go through the ring. What tracers have counted keeps
// the bucket that they gave it, or the agent's slot of it. What is older is raised into
// the oldest and counted as late; what ends after now is lowered into the
// bucket of now and counted as early.
//
// # Bounds
//
// An interval holds at most Config.MaxAggregates keys, of LabelBytes, that its
// origins share, a reserve of a quarter as much for those with few, and MaxOrigins
// origins, each with its budgets of distinct values. Over a budget, a label
// collapses; where there is no row, the whole key collapses into its origin's one
// overflow aggregate. Groups that are merged are charged the same. Nothing that a
// tracer sends can make a table larger than these rows a bucket, or a registry larger
// than these bytes. All sketches share SketchMemory of Config.SketchBytes; without
// more, they collapse their lowest bins early, and no span is lost. What is merged
// has mergedBuckets rows for each key that there may be, maxMappings mappings and a
// quarter of the sketch memory a cycle, and what finds no room is refused whole: its
// tracer has counted it, so the agent can have it as it is. A key that moved or is spread has a row with each
// drainer that counted it; the tables' index has room for that from the start. There
// are MaxPartitions partitions at most, and as many counters of demand.
package aggregate
