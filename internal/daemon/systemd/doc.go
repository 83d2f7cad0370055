// Package systemd tells the service manager that started the daemon how it is:
// that it starts, that it is ready, what its books say, that it lives, and that it
// stops; and it takes the sockets that the service manager has given (Sockets). The words of the
// protocol, sd_notify, and the reading of its environment are the library's (coreos/go-systemd);
// what is said and when is decided here.
//
// A nil Supervisor stands for a daemon that no service manager started: every
// method then does nothing. So nothing else asks whether there is one.
//
// # What the watchdog means
//
// WATCHDOG=1 is sent from a goroutine of its own, and only after the daemon has
// answered that it is well: that cycles are sealed. A seal
// needs every drainer to answer and the flush to give memory back, so a drainer
// that stands still, a lock that is never given back and a question that hangs
// all end in silence, and the service manager acts on silence. An agent that is
// away is no reason for a restart: it would lose what waits for the agent.
//
// While stopping, cycles are rightly not sealed any more. The grace bounds that
// time, so the watchdog is fed without a question.
//
// # Threading and bounds
//
// Ready starts one goroutine and Close ends it. Nobody waits longer than a second
// for a message to be taken: being supervised never makes the daemon wait.
package systemd
