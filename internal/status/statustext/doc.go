// Package statustext shows a person the status of a daemon as text.
//
// # What it owns
//
// Render writes one status: whether anything is lost comes first, with the books that say why;
// then rings, destinations, the last flushes, the busiest aggregates and the tracers. Where an
// earlier status is given too, it shows rates. Every text of a daemon, a label or an answer of the
// agent, is made printable before it gets here or on its way, so it can't act on a terminal.
//
// # Threading and bounds
//
// Render is a function of its arguments, for any goroutine. Lists are cut to some lines each, and
// labels to some characters, whatever the daemon answered.
package statustext
