// Package export exports sealed cycles: it encodes them for every destination, delivers the payloads, and
// accounts for each span by destination.
//
//	Accept (sealing goroutine)                     sender (one goroutine per push destination)
//	  merge rows by (key, bucket, mapping)           take the payload with the fewest tries, then the oldest
//	  for each destination:                          begin its delivery, and those of other origins
//	    push: encode payloads, queue them -------->  take an answer: settle the payload, or retry it
//	    pull: publish                                pause while the destination is unavailable
//	  release the cycle's memory
//
// An Exporter describes a destination. Push exporters (agent, OTLP) encode and send; pull exporters
// (Prometheus) publish statistics that are scraped. A destination shares nothing with another, so one that
// is slow or unavailable delays no other. Each kind has a package below this one; those that send over HTTP
// share post.
//
// # Retries
//
// A payload that certainly did not arrive is retried. One that may have arrived is abandoned as ambiguous,
// because destinations do not deduplicate. Running totals (Exporter.Cumulative) are retried in both cases:
// a second copy changes nothing. The payloads of each cycle replace those of earlier cycles in the queue.
//
// # Accounting
//
// Each accepted span is pending at each destination until its payload has an outcome there; then it is
// flushed, or unsent with exactly one Reason. Payloads of deltas are accounted one by one, running totals
// per cycle (see snapshot). Scraped statistics count as flushed when they are published. Spans sealed
// before an auto-discovered destination is found are counted separately, and not pending for it.
//
// cycleState tracks when clients that wait for a cycle are answered, when its spans are settled, and
// whether it is in doubt for the next daemon should this one be killed.
//
// # Concurrency
//
// Accept must not wait for a destination. Up to maxDeliveries payloads are in flight to each, one per
// origin; a delivery is a goroutine that makes one request and passes the answer to the sender, which alone
// decides. Another goroutine runs Exporter.Watch.
//
// # Limits
//
// For each destination: the length of a payload (Config.MaxPayloadBytes), queued payloads
// (Config.RetryBytes, Config.RetryAge, and maxWaiting of them), payloads in flight (maxDeliveries, and
// together Config.MaxPayloadBytes), one request (Config.Timeout), how long published cycles wait for a
// scrape (Config.RetryAge), and the pause between two tries.
package export
