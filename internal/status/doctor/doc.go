// Package doctor reports what is right and what is wrong about a daemon, and how to fix it.
//
// # What it owns
//
// Look reads one status, which is everything that the daemon reports about itself, and returns findings in
// the order of the data path: the program, receivers and their senders, destinations and their clocks, the
// accounting, and limits. Arrived adds what a Prometheus has. The package makes no request itself.
//
// # Findings
//
// OK is right. Notice is no mistake, but can explain numbers that surprise. Wrong is to be fixed. Every
// finding that is not OK has a fix.
//
// # Concurrency and limits
//
// All functions depend on their arguments only. There are as many findings as there are receivers,
// destinations and reasons in the status.
package doctor
