// Package statustext renders the status of a daemon as text.
//
// Render writes one status. The accounting comes first, with the answer whether anything is lost; then rings,
// destinations, the last flushes, the busiest aggregates, and the tracers. Given an earlier status, it shows
// rates. All texts from the daemon, such as labels and responses of the agent, are sanitized, so that they
// can't contain control sequences of a terminal.
//
// Render is a pure function. It truncates lists and labels, regardless of the status.
package statustext
