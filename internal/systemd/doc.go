// Package systemd tells the service manager that started the daemon how it is:
// that it is ready, what its books say, that it lives, and that it stops. It is
// the sender's half of the sd_notify protocol, lines in a datagram, and no more.
//
// A nil Supervisor stands for a daemon that no service manager started: every
// method then does nothing. So nothing else asks whether there is one.
//
// # What the watchdog means
//
// WATCHDOG=1 is sent from a goroutine of its own, and only after the daemon was
// asked how it is and answered that it is well: that cycles are sealed. A seal
// needs every drainer to answer and the flush to give memory back, so a drainer
// that stands still, a lock that is never given back or a question that hangs
// all end in silence, and silence is what the service manager acts on. That the
// agent is away is not an illness: a restart would lose what waits for it.
//
// While stopping, cycles are rightly not sealed any more. The grace bounds that
// time, so the watchdog is fed without a question.
//
// # Threading and bounds
//
// Ready starts one goroutine and Close ends it. A message that the service
// manager does not take within a second is given up: being supervised never
// makes the daemon wait.
package systemd
