// Package relay implements a bare relay, the baseline for measuring forwarding: a process in
// place of the daemon that uses as few system calls as Go allows. It parses only as much as is
// needed to find the end of a message, forwards the message when it is complete, and returns
// the response in the same way. Every proxy has at least the costs of the relay.
//
// To find the end of an HTTP/2 message, the relay would have to parse frames. So it copies the
// bytes of HTTP/2 connections in both directions; settings, flow control and pings are left to
// the two ends.
//
// One goroutine serves each connection, with a connection to the other end; two if it only
// copies. A buffer grows to the longest message.
package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Job is the configuration of a relay process.
type Job struct {
	Network string // "unix" or "tcp", for both sides
	Listen  string // address to listen on
	To      string // address to forward requests to
	Pump    bool   // copy bytes without parsing
}

// Ready is the relay's message that it is listening.
type Ready struct{ Address string }

// Run runs a relay process: it reads its job, writes its address, and returns when the input
// ends.
func Run(in io.Reader, out io.Writer) error {
	var j Job
	words := json.NewDecoder(in)
	if err := words.Decode(&j); err != nil {
		return fmt.Errorf("read job: %w; this command is started by spanstatsd-lab bench", err)
	}
	listener, err := net.Listen(j.Network, j.Listen)
	if err != nil {
		return fmt.Errorf("start relay: %w", err)
	}
	defer listener.Close()
	if err := json.NewEncoder(out).Encode(Ready{listener.Addr().String()}); err != nil {
		return fmt.Errorf("report ready: %w", err)
	}
	go func() {
		for {
			sender, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				if err := j.relay(sender); err != nil {
					fmt.Fprintln(os.Stderr, "relay:", err)
				}
			}()
		}
	}()
	_, _ = io.Copy(io.Discard, in) // the end of the input asks the process to exit
	return nil
}

// relay forwards the requests of one client, and their responses, until the client closes the
// connection.
func (j *Job) relay(sender net.Conn) error {
	defer sender.Close()
	to, err := net.Dial(j.Network, j.To)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer to.Close()
	if j.Pump {
		go pump(sender, to)
		pump(to, sender)
		return nil
	}
	buf := make([]byte, 64<<10)
	for {
		for _, way := range [...]struct{ from, to net.Conn }{{sender, to}, {to, sender}} {
			var message []byte
			if message, buf, err = readMessage(way.from, buf); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if _, err := way.to.Write(message); err != nil {
				return fmt.Errorf("relay message: %w", err)
			}
		}
	}
}

// pump copies bytes in one direction until either side closes its connection. It then closes
// both.
func pump(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
