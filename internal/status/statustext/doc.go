// Package statustext renders the status of a daemon as text.
//
// Render writes one status. It begins with a summary that reports whether anything is lost, and requests by rate, errors
// and latency. Then follow the accounting, destinations, senders, cardinality, and last the daemon's internals. Given an
// earlier status, it shows rates. All texts from the daemon, such as labels and responses of the agent, are sanitized, so
// that they can't contain control sequences of a terminal.
//
// Render is a pure function. It truncates lists and labels, regardless of the status.
package statustext
