package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
)

// A bare relay is what handing requests on is measured beside: a process between two Unix
// sockets, with the fewest system calls that Go allows. It looks at nothing but where a
// message ends, sends it on when all of it is there, and gives the answer back in the same
// way. What it costs a proxy has to pay; what a proxy costs beyond that is its own doing.

// relayJob is what a relay's process is told to do.
type relayJob struct {
	Listen string // socket that it listens on
	Agent  string // socket that it hands requests on to
}

// Relay is the process of a bare relay: it reads its job, says when it listens, and ends
// when the input does.
func Relay(in io.Reader, out io.Writer) error {
	var j relayJob
	words := json.NewDecoder(in)
	if err := words.Decode(&j); err != nil {
		return fmt.Errorf("read job: %w; this command is started by spanstatsd bench", err)
	}
	listener, err := net.Listen("unix", j.Listen)
	if err != nil {
		return fmt.Errorf("start relay: %w", err)
	}
	defer listener.Close()
	if err := json.NewEncoder(out).Encode(&result{}); err != nil {
		return fmt.Errorf("say ready: %w", err)
	}
	go func() {
		for {
			tracer, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				if err := relay(tracer, j.Agent); err != nil {
					fmt.Fprintln(os.Stderr, "relay:", err)
				}
			}()
		}
	}()
	_, _ = io.Copy(io.Discard, in) // its end says that whoever started us wants no more
	return nil
}

// relay carries requests of one tracer and their answers until the tracer leaves.
func relay(tracer net.Conn, socket string) error {
	defer tracer.Close()
	agent, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("connect to agent: %w", err)
	}
	defer agent.Close()
	buf := make([]byte, 64<<10)
	for {
		for _, way := range [...]struct{ from, to net.Conn }{{tracer, agent}, {agent, tracer}} {
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

// lengthField is what comes before a body's length, as Go's HTTP writes it.
var lengthField, endOfHead = []byte("\r\nContent-Length: "), []byte("\r\n\r\n")

// readMessage reads a message that states its length into a buffer, which grows to hold it,
// and where nothing follows before it was answered.
func readMessage(from io.Reader, buf []byte) (message, grown []byte, err error) {
	length, read := -1, 0
	for length < 0 || read < length {
		if read == len(buf) {
			buf = slices.Grow(buf, max(length, 2*read)-read)
			buf = buf[:cap(buf)]
		}
		n, err := from.Read(buf[read:])
		if err != nil {
			return nil, buf, err
		}
		read += n
		if length < 0 {
			if length, err = messageLength(buf[:read]); err != nil {
				return nil, buf, err
			}
		}
	}
	return buf[:read], buf, nil
}

// messageLength is that of head and body, -1 while the head has not come whole.
func messageLength(text []byte) (int, error) {
	head, _, isWhole := bytes.Cut(text, endOfHead)
	if !isWhole {
		return -1, nil
	}
	_, rest, _ := bytes.Cut(head, lengthField)
	digits, _, _ := bytes.Cut(rest, endOfHead[:2])
	body, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0, fmt.Errorf("read message: it does not state its length: %w", err)
	}
	return len(head) + len(endOfHead) + body, nil
}
