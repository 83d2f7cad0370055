// Package flush turns sealed cycles into payloads and gets them to every destination,
// or says by name why it could not.
//
// The way of a sealed cycle:
//
//	Accept (the sealing goroutine)          a sender (one goroutine a destination)
//	  merge rows by (key, bucket)             take the payload tried least, then oldest
//	  of each destination:                    begin its delivery, and those of other origins
//	    encode its payloads                   take an answer: resolve it, or keep it for another try
//	    enqueue ----------------------------> back off while the destination is away
//	  release the cycle's memory
//
// What is particular to a destination is an Exporter: how rows are encoded, how a
// payload is delivered, what the destination wants. Each kind has a room of its own
// below this one, and this one names none; those that speak HTTP share package post. All
// else a Destination does: it has a queue, a sender, a backoff, a retry age, books, a log of
// outcomes and a history, and shares none of them. So a destination that is slow or away delays no other.
//
// Accept computes and never waits for a destination. Up to maxDeliveries payloads are
// under way to each at once, one of each origin; a delivery is a goroutine that makes
// one request and hands what was answered to the sender, which alone decides. A third
// goroutine is the exporter's own, for what it asks its destination by itself.
//
// The rule on sending again: what certainly did not arrive is tried again, and
// nothing else. What may have arrived is given up as ambiguous, because a second copy
// would be counted again. Which is which the exporter says of each attempt.
//
// Where payloads have running totals (Exporter.SendsTotals) each cycle's say all that those
// before said. So they take the place of those that wait, and what is given up of them is
// no loss: its spans stay held until a payload that says them too has arrived, or their
// total has ended; see copies.
//
// A cycle is doubtful while anything that says its spans is under way to any destination, and
// once one has taken some or may have, until it is settled (cycleDelivery). Who finds this
// process killed must not have those counted again.
//
// What is published for readers to fetch (Exporter.Unread) is flushed at once. Its cycles are
// settled when a reader had them whole, or nobody came for the retry age; see Unread.
//
// A destination that nobody named (Exporter.Joined) is looked for. What is sealed before it is found is
// counted so and not kept for it: it owes no outcome, and nobody who waits for a cycle waits for it.
//
// The books: each span accepted is held by each destination until its payload there has
// an outcome (of totals: until it has arrived or never will), then it is flushed or unsent
// under exactly one Reason. The three are counted where they happen, none is computed from
// the others. A cycle's delivery is resolved when it has its outcome at every destination,
// with the first failure at any.
//
// Bounds, of each destination: a payload (Config.MaxPayloadBytes), the payloads waiting
// (Config.RetryBytes, Config.RetryAge, and maxWaiting of them), those under way
// (maxDeliveries, and together Config.MaxPayloadBytes), one request (Config.Timeout), how long
// published cycles are remembered that nobody reads (Config.RetryAge),
// the pause between two tries.
package flush
