package otlp

// Result is what became of a request as far as counting goes.
type Result uint8

const (
	ResultCounted       Result = iota
	ResultCountedBefore        // its SDK has no answer to it yet, or one that says try again, and does
	ResultByTracer             // its sender says that it computes its statistics itself
	ResultUnread               // it can't be read
	ResultNoRoom               // a ring or an interval has no room, or the daemon stops
	ResultTooMany              // it has more spans than the rings can ever hold
	ResultTooLarge             // over --otlp-max-body, as it comes or uncompressed
	ResultBusy                 // no buffer is free
	ResultNotWanted            // no destination takes statistics
	ResultIncomplete           // its SDK did not send all of it
	ResultRefused              // nothing that is taken here, by its path, method or header
	ResultOther                // metrics, logs, or a question of health or of a browser, which have no spans
	ResultBug                  // a defect of ours, contained

	results = int(ResultBug) + 1
)

// resultNames are the results' names in metrics.
var resultNames = [results]string{
	"counted", "counted_before", "by_tracer", "unread", "no_room", "too_many", "too_large", "busy",
	"not_wanted", "incomplete", "refused", "other", "bug",
}
