// Package snapshot has benchmarks only: what a snapshot costs on each path, from a message in
// memory to the counted span, and in the client. `make bench-ingest` prints them as a table.
//
// They stand behind the sockets and use what any door uses: a publisher of internal/admit, and
// the drainers and tables of internal/aggregate. One goroutine hands over; the figures are of
// the whole process, the drainers included. Memory is that of a daemon with its defaults, and
// of one round of messages.
package snapshot
