// Package systemd reports the state of the daemon to the service manager that started it, and takes the sockets
// inherited from it (Sockets). The library coreos/go-systemd implements the protocol, sd_notify; this package
// decides the content and the time of the messages.
//
// Without a service manager, Supervisor is nil, and its methods do nothing.
//
// # Watchdog
//
// WATCHDOG=1 is sent by a goroutine of its own, only after the daemon has reported that cycles are being
// sealed. A seal requires every drainer to respond and the flusher to return memory, so a blocked drainer, a
// deadlock and a hanging status all result in silence, and the service manager restarts the daemon. An
// unreachable agent is not a reason for a restart, which would lose the spans waiting for it.
//
// During shutdown cycles are no longer sealed. The grace period limits its duration, so the watchdog is fed
// unconditionally.
//
// # Concurrency and limits
//
// Ready starts one goroutine, and Close ends it. Sending a message takes at most a second, so the service
// manager can't block the daemon.
package systemd
