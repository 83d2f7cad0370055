// Package flush turns sealed cycles into payloads and gets them to the Datadog
// agent, or says by name why it could not.
//
// The way of a sealed cycle:
//
//	Accept (the sealing goroutine)          the sender (one goroutine)
//	  merge rows by (key, bucket)             take the payload tried least, then oldest
//	  encode one payload an origin            begin its delivery, and those of other origins
//	  release the cycle's memory              take an answer: resolve it, or keep it for another try
//	  enqueue ------------------------------> back off while the agent is away
//
// Accept computes and never waits for the network. Up to maxDeliveries payloads are
// under way at once, one of each origin; a delivery is a goroutine that makes one
// request to /v0.6/stats and hands what was answered to the sender, which alone
// decides. A third goroutine, discovery, reads
// /info and publishes the agent's Features. It looks again when the state on an
// answer changes, when nobody answers, and while the agent wants nothing; an
// agent that it finds back ends the sender's pause.
//
// The rule on sending again: what certainly did not arrive is tried again, and
// nothing else. A body is sent when the agent asks for it, so one that hangs or
// goes before it reads has nothing; manner says what becomes of those that never ask.
// A request of which any byte was refused did
// not arrive either, because the agent counts only whole bodies. A request that
// was written whole and never answered may have been counted, and the agent does
// not recognise a second copy, so that payload is given up as ambiguous.
//
// The books: each span accepted is held until its payload has an outcome, then
// it is flushed or unsent under exactly one Reason. The three are counted
// where they happen, none is computed from the others.
//
// Bounds: a payload (Config.MaxPayloadBytes), the payloads waiting
// (Config.RetryBytes, Config.RetryAge, and maxWaiting of them), those under way
// (maxDeliveries, and together Config.MaxPayloadBytes), one request
// (Config.Timeout), what is read of an answer, the pause between two tries, what
// is kept of refused payloads (package dump).
package flush
