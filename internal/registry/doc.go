// Package registry numbers the keys and origins of one interval and keeps its budgets.
//
// A key that was not met before in the interval is judged (judge.go): each label by its origin's
// budget, then the key itself by the rows and bytes that all origins share (rowjudge.go). A label
// that gets a place becomes a number, a key a row of numbers and the HTTP status, which has a
// budget too, and two keys are one exactly where these are equal. A label that gets no place is
// replaced by its mask (package mask) if that gets one, or else by tracer_blocked_value. So totals
// survive, and as much of the name as there is room for. The labels are described in package span.
//
// # What repeats wins
//
// The gate before a budget (budget.go) asks how familiar a value is: whether it came before in
// this interval, or in the last, or had a place there and came again. For the last kind its place
// is kept, exactly: the interval before leaves a set of hashes (past.go). Whatever comes and gets
// no place is noted in a Bloom filter (bloomfilter.go), masked or not, so that it is known when it
// comes again; until it passes it is counted under its mask or its collapsed key. A mask is known no
// better than what came again in this interval, and has no place kept, so names win over masks. Rows
// are such a budget too, with a share for each origin (shares.go).
//
// # Threading
//
// One lock guards everything here, that of Intervals. Publishers take it for each key that they do
// not know, inside the interval's cycles. The sealer alone begins an interval, when nobody is
// inside a cycle of the one before the last. The flush reads what Contents returned, which never
// changes.
//
// # Bounds
//
// Origins have such a gate only as far as attributes of a resource tell them from their service: one
// that finds no room is counted as its service (origins.go). An origin that finds none at all, or
// whose process has half of all, has the common origin, which is one more than Config.MaxOrigins and
// has the room of one.
//
// Config.Bytes is the most that the registries come to hold, known before the first key: rows and
// label bytes for all origins, a reserve for those below their fair share, and the filter. A key
// without a row holds nothing. A wrong answer of the filter costs one of the places that nothing
// which repeated needs.
package registry
