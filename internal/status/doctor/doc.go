// Package doctor finds problems of a daemon in its status, and suggests fixes.
//
// Look reads one status and returns findings in the order of the data path: the program, receivers and their senders,
// destinations and their clocks, the accounting, and limits. Arrived compares the calls in a Prometheus with the exported
// spans; only AskPrometheus sends a request.
//
// # Findings
//
// OK means that there is no problem. Notice is not a problem, but can explain surprising numbers. Wrong is a problem.
// Every finding that is not OK has a fix. Verdicts are computed from counts and states. Texts from the status are only
// quoted, with control characters escaped, so a status can't add findings of its own.
//
// # Concurrency and limits
//
// All functions depend on their arguments only. There are as many findings as there are receivers,
// destinations and reasons in the status.
package doctor
