package socket

import (
	"fmt"
	"net"
	"os"
)

// A socket that a service manager has made is given to one daemon after the other, and stays
// open while there is none. So a daemon that stops leaves it as it is: it is neither shut,
// which would shut it for the next daemon as well, nor removed. Tracers that connected and
// were not accepted wait in it, with all that they have written, and the next daemon accepts
// and counts them. Its mode and owner, and a lock that keeps others off it, are the service
// manager's business.

// listenGiven takes a socket over.
func listenGiven(s Config) (*Listener, error) {
	file, err := os.Lstat(s.Path)
	if err != nil {
		return nil, fmt.Errorf("look at the socket that was given: %w; restart the service manager's "+
			"socket unit", err)
	}
	s.Given.SetUnlinkOnClose(false)
	return &Listener{config: s, bound: []*net.UnixListener{s.Given}, file: file}, nil
}
