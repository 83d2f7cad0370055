// Package relay is what handing requests on is measured beside: a bare relay, a process in the
// daemon's place, with the fewest system calls that Go allows. It looks at nothing but where
// a message ends, sends it on when all of it is there, and gives the answer back in the same
// way. What it costs a proxy has to pay; what a proxy costs beyond that is its own doing.
//
// Of HTTP/2 it would have to take messages apart to find their ends. So there it pumps bytes
// both ways as they come: settings, windows and pings are between the two ends.
//
// A goroutine serves each connection, with one to the other end, and two where it pumps. A buffer
// grows to the longest message.
package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Job is what a relay's process is told to do.
type Job struct {
	Network string // "unix" or "tcp", of both ends
	Listen  string // where it listens
	To      string // where it hands requests on to
	Pump    bool   // bytes, whatever they say
}

// Ready is what it says when it listens.
type Ready struct{ Address string }

// Run is the process of a relay: it reads its job, says where it listens, and ends when the
// input does.
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
		return fmt.Errorf("say ready: %w", err)
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
	_, _ = io.Copy(io.Discard, in) // its end says that whoever started us wants no more
	return nil
}

// relay carries what one sender sends, and the answers, until that leaves.
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

// pump carries bytes one way until either end leaves. Both are closed then.
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
