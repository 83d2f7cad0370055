package datadog

// Result is what became of a request that brought traces.
type Result uint8

const (
	ResultCounted Result = iota // and forwarded with the mark
	// and forwarded with the mark: its tracer has no answer to it yet, and tries again
	ResultCountedBefore
	ResultByTracer // its tracer computes its statistics itself
	ResultUnread   // left to the agent: not read, or only the agent can judge it
	ResultNoRoom   // left: a ring has no room, or the daemon stops
	ResultTooLarge // left: over --apm-max-body, or no buffer is free
	// left: the agent takes no statistics, or filters traces in a way of its own
	ResultNotWanted
	ResultAgentAway  // not counted: there was no connection to the agent
	ResultIncomplete // its tracer did not send all of it
	ResultBug        // left: a defect of ours, contained

	results = int(ResultBug) + 1
)

// resultNames are the results' names in metrics.
var resultNames = [results]string{
	"counted", "counted_before", "by_tracer", "unread", "no_room", "too_large", "not_wanted", "agent_away",
	"incomplete", "bug",
}

// String is the result's name in metrics.
func (r Result) String() string { return resultNames[r] }

// StatsResult is what became of a request that brought statistics.
type StatsResult uint8

const (
	StatsMerged       StatsResult = iota // into our own; the agent gets them with those
	StatsMergedBefore                    // the same: its tracer did not get our answer, and tries again
	StatsUnfit                           // forwarded: what can't be added up exactly, such as half a span
	// forwarded: sketches of a mapping that the agent does not know, or of one too many
	StatsMapping
	StatsOtherTime  // forwarded: of no bucket of ours, and not just sent either
	StatsUnread     // forwarded: the agent says what is wrong with it
	StatsNoRoom     // forwarded: too many origins, groups or bins, or the daemon stops
	StatsTooLarge   // forwarded: over --apm-max-body, or no buffer is free
	StatsNotWanted  // forwarded: the agent takes no statistics
	StatsIncomplete // its tracer did not send all of it
	StatsBug        // forwarded: a defect of ours, contained

	statsResults = int(StatsBug) + 1
)

var statsResultNames = [statsResults]string{
	"merged", "merged_before", "unfit", "mapping", "other_time", "unread", "no_room", "too_large",
	"not_wanted", "incomplete", "bug",
}
