package flush

// Reason names why spans that were aggregated did not reach a destination.
type Reason string

const (
	Rejected    Reason = "rejected"    // the destination answered that it will not take them
	NotWanted   Reason = "not_wanted"  // the destination takes no statistics
	Ambiguous   Reason = "ambiguous"   // written whole, never answered
	Expired     Reason = "expired"     // waited longer than the retry age, or than their running total lasts
	QueueFull   Reason = "queue_full"  // the oldest, when too much waited, or too many running totals
	Shutdown    Reason = "shutdown"    // still waiting when the daemon ended
	Unencodable Reason = "unencodable" // fits in no payload
)

// Reasons are all of them, so that each can be shown from the start at 0.
var Reasons = []Reason{Rejected, NotWanted, Ambiguous, Expired, QueueFull, Shutdown, Unencodable}

// Result names what became of a payload. All but Retried are final, and a
// payload has one final result; Retried counts tries that another follows.
type Result string

const (
	ResultAccepted  Result = "accepted"
	ResultRetried   Result = "retried"
	ResultRejected  Result = "rejected"
	ResultNotWanted Result = "not_wanted"
	ResultAmbiguous Result = "ambiguous"
	ResultGivenUp   Result = "given_up" // expired, queue_full or shutdown

	// ResultSuperseded is of running totals that a newer payload says too.
	ResultSuperseded Result = "superseded"
)

// Results are all of them.
var Results = []Result{
	ResultAccepted, ResultRetried, ResultRejected, ResultNotWanted, ResultAmbiguous, ResultGivenUp,
	ResultSuperseded,
}

// result is the payload's final result when its spans are unsent for r.
func (r Reason) result() Result {
	switch r {
	case Rejected:
		return ResultRejected
	case NotWanted:
		return ResultNotWanted
	case Ambiguous:
		return ResultAmbiguous
	}
	return ResultGivenUp
}
