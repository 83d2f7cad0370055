// Package snapshot contains only benchmarks: the cost of a snapshot on each path, from a
// message in memory to the counted span, and in the client. `make bench-ingest` prints them as
// a table.
//
// The benchmarks bypass the sockets and use the packages that all receivers use: a publisher of
// internal/admit, and the drainers and tables of internal/aggregate. One goroutine publishes.
// The figures are those of the whole process, including the drainers. Memory is that of a
// daemon with defaults, plus one round of messages.
package snapshot
