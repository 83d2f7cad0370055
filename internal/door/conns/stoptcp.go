package conns

import (
	"context"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// ListenTCP opens a socket without multipath TCP, of which the kernel can't be told to let
// nothing more through.
func ListenTCP(addr string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	return config.Listen(context.Background(), "tcp", addr)
}

// StopTCP ends accepting of TCP behind who has connected, as far as the context lasts.
// Shutting the socket down, as it is done with a Unix one, would throw away who waits in its
// queue. So the kernel is told to let nothing more through to it: whoever knocks from then on
// is refused when it is closed.
func StopTCP(ctx context.Context, from net.Listener) {
	tcp, ok := from.(*net.TCPListener)
	if !ok {
		return
	}
	if raw := RawOf(tcp); raw != nil {
		nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K} // no byte of a packet
		filter := unix.SockFprog{Len: 1, Filter: &nothing}
		// fails where the kernel has no filters; then some may be thrown away
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
		})
		looking := time.NewTicker(time.Millisecond)
		defer looking.Stop()
		// while somebody has connected who is not accepted yet
		for happened(raw, unix.POLLIN) == unix.POLLIN && ctx.Err() == nil {
			<-looking.C
		}
	}
	LeaveQueue(ctx, tcp)
}

// LeaveQueue has an accept of TCP end at once, and leaves who waits.
func LeaveQueue(_ context.Context, from net.Listener) {
	if tcp, ok := from.(*net.TCPListener); ok {
		_ = tcp.SetDeadline(time.Unix(1, 0)) // fails only where it is closed already
	}
}
