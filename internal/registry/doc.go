// Package registry assigns IDs to the keys and origins of one interval and enforces the cardinality
// budgets.
//
// A key that is new to the interval is admitted (admitter.go). Each of its labels takes a slot of a budget
// of its origin, and gets an ID (texts.go, tags.go). The key itself gets a row, within limits on rows and
// bytes that all origins share (rows.go). A key is encoded as a list of IDs; two keys are equal if and only
// if their encodings are. The HTTP status is treated as a label. A label that gets no slot is replaced by its
// mask (package mask) if the mask gets one, and by tracer_blocked_value otherwise. So totals are always exact,
// and names are kept as far as the budgets permit.
//
// # Recurring values keep their slots
//
// The promise: a value that comes at least twice in every interval has its own slot from the second
// interval on while such values are fewer than half of the budget, and from the fourth on while they
// are fewer than seven eighths, whatever else arrives; masks never take more than a quarter. Masks
// that recur are such values, too. Values that come at least twice in two successive intervals and
// then never again can't be distinguished from such values, and are treated like them while they come.
//
// When an interval begins, each budget is divided according to the previous interval (budget.go): slots
// that are kept, slots for values that recurred without one, and slots for any value. Values that get no
// slot are remembered in a Bloom filter until the end of the next interval (filter.go). Values that keep
// their slots are remembered exactly (previous.go). Rows and their bytes are budgets of the same kind,
// shared fairly between the origins.
//
// # Concurrency
//
// One lock, held by Intervals, guards all state. Publishers take it at the first two uses of each key in
// an interval, at each use of a key without a row that has not recurred, and for one in 61 further spans of
// keys that lost a label. Only the sealer begins an interval, and only when no publisher is inside a cycle of
// the interval before the last. Exporters read the slices that Contents returned, which are immutable, without
// the lock.
//
// # Limits
//
// The number of origins is a budget, too (origins.go). An origin that gets no slot, or whose process has
// half of the slots, is counted in the common origin. That one exists in addition to Config.MaxOrigins,
// and has the budgets of a single origin.
//
// Config.Bytes is the maximum memory of the registries, known before the first key: rows and label
// bytes for all origins, a reserve for those below their fair share, the filter, and the measurement of
// labels over their budgets. A key without a row takes no memory. A false positive of the filter takes one of
// the slots for values that recurred.
//
// A label with more values than its budget allows is measured until the interval ends (overflow.go): its
// number of values is estimated, and its most frequent replaced values are found. At most 16 labels are
// measured at a time. A label within its budget takes neither memory nor time for this.
package registry
