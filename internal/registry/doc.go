// Package registry numbers the keys and origins of one interval and keeps its budgets.
//
// A key that is new to the interval is admitted (admitter.go): each of its labels is charged to a
// budget of its origin, the key itself to the rows and bytes that all origins share. A label that
// gets a row of its budget becomes a number. A key becomes a row of numbers, and two keys are one
// exactly if these are equal. The HTTP status is a label, too. A label that gets no row is replaced
// by its mask (package mask) if that gets one, and by tracer_blocked_value otherwise. So totals
// survive, and as much of the name as there is room for.
//
// # Recurring values keep their rows
//
// The promise: a value that comes at least twice in every interval has its own row from the second
// interval on while such values are fewer than half of the budget, and from the fourth on while they
// are fewer than seven eighths, whatever else arrives; masks never take more than a quarter. Masks
// that recur are such values, too. Values that come at least twice in two successive intervals and
// then never again can't be told from such values, and count as such while they come.
//
// When an interval begins, each budget is divided by what the previous interval knows of its values
// (budget.go): rows that are kept, rows for values that recurred without one, and open rows. A value
// that finds no row is remembered until the end of the next interval, in a Bloom filter (filter.go).
// The rows that are kept are remembered exactly (previous.go). Rows and their bytes are such budgets,
// which the origins share fairly (rowbudget.go).
//
// # Concurrency
//
// One lock guards everything here, that of Intervals. Publishers take it for each key at its first
// two uses in an interval, and for each use of a key without a row that has come once. The sealer
// alone begins an interval, when no publisher is inside a cycle of the one before the last. The
// flush reads what Contents returned, which never changes.
//
// # Limits
//
// The places of origins are a budget, too (origins.go). An origin that finds none there, or whose
// process has half of all, has the common origin, which is one more than Config.MaxOrigins and has
// the rows of one.
//
// Config.Bytes is the most that the registries come to hold, known before the first key: rows and
// label bytes for all origins, a reserve for those below their fair share, and the filter. A key
// without a row holds nothing. A false positive of the filter costs one of the rows that are for
// values which recurred.
package registry
