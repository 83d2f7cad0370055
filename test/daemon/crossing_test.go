package daemon_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// crossing is a socket between the daemon and an agent, where every connection
// meets what a test wants it to meet, byte by byte.
type crossing struct {
	t      *testing.T
	path   string
	agent  string                  // its socket
	stats  atomic.Pointer[meeting] // what connections with a payload meet
	info   atomic.Pointer[meeting] // what others meet
	mu     sync.Mutex
	closed func()
}

// meeting is what becomes of one connection. It has read nothing of it yet.
type meeting func(c *crossing, in *bufio.Reader, conn *net.UnixConn)

// newCrossing listens beside an agent's socket.
func newCrossing(t *testing.T, agent string) *crossing {
	c := &crossing{t: t, path: agent + "x", agent: agent, closed: func() {}}
	c.meet(passing)
	c.meetInfo(passing)
	c.open()
	t.Cleanup(c.close)
	return c
}

// meet changes what connections with a payload meet from now on.
func (c *crossing) meet(m meeting) { c.stats.Store(&m) }

// meetInfo is the same for the question what the agent wants.
func (c *crossing) meetInfo(m meeting) { c.info.Store(&m) }

// open listens, on a socket file that is made anew.
func (c *crossing) open() {
	_ = os.Remove(c.path)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: c.path})
	if err != nil {
		c.t.Error(err)
		return
	}
	listener.SetUnlinkOnClose(false) // as the real agent leaves it
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			serving.Go(func() { c.serve(conn) })
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.closed
	c.closed = sync.OnceFunc(func() { before(); _ = listener.Close(); serving.Wait() })
}

// close ends all listeners and leaves the file, as a process that was killed.
func (c *crossing) close() {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	closed()
}

func (c *crossing) serve(conn *net.UnixConn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	start, err := in.Peek(4)
	if err != nil {
		return
	}
	if string(start) != "POST" {
		(*c.info.Load())(c, in, conn)
		return
	}
	(*c.stats.Load())(c, in, conn)
}

// passing puts the request to the agent and brings its answer.
func passing(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
	_, _ = conn.Write(c.ask(in, conn))
}

// invite reads a request's head and asks for its body, if there is one.
func invite(in *bufio.Reader, conn net.Conn) (*http.Request, error) {
	request, err := http.ReadRequest(in)
	if err == nil && request.Header.Get("Expect") != "" {
		request.Header.Del("Expect")
		_, err = conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	return request, err
}

// ask puts a request to the agent, and returns its answer as it was.
func (c *crossing) ask(in *bufio.Reader, conn net.Conn) []byte {
	agent, err := net.Dial("unix", c.agent)
	if err != nil {
		return nil
	}
	defer agent.Close()
	request, err := invite(in, conn)
	if err != nil {
		return nil
	}
	request.Close = true
	if request.Write(agent) != nil {
		return nil
	}
	answer, _ := io.ReadAll(agent)
	return answer
}

// hanging takes what comes and says nothing, as a process that is stopped.
func hanging(_ *crossing, in *bufio.Reader, _ *net.UnixConn) { _, _ = io.Copy(io.Discard, in) }

// swallowing asks for the body, and says nothing more until the client leaves.
func swallowing(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
	if _, err := invite(in, conn); err == nil {
		hanging(c, in, conn)
	}
}

// cutBeforeReading leaves with the head read.
func cutBeforeReading(_ *crossing, in *bufio.Reader, _ *net.UnixConn) { _, _ = http.ReadRequest(in) }

// tooLate has the agent count, and brings its answer when the client has left.
func tooLate(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
	answer := c.ask(in, conn)
	_, _ = io.Copy(io.Discard, in)
	_, _ = conn.Write(answer)
}

// cutWhileReading leaves in the middle of the request.
func cutWhileReading(_ *crossing, in *bufio.Reader, conn *net.UnixConn) {
	if _, err := invite(in, conn); err == nil {
		_, _ = io.ReadFull(in, make([]byte, 1000))
	}
}

// cutAfterReading leaves with the whole request read, and nothing counted.
func cutAfterReading(_ *crossing, in *bufio.Reader, conn *net.UnixConn) {
	if request, err := invite(in, conn); err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
}

// saying reads the request and answers with these bytes.
func saying(bytes string) meeting {
	return func(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
		cutAfterReading(c, in, conn)
		_, _ = conn.Write([]byte(bytes))
	}
}

// answering reads the request and answers with a status, counting nothing.
func answering(status int, header ...string) meeting {
	return saying(fmt.Sprintf("HTTP/1.1 %d %s\r\n%s\r\nContent-Length: 0\r\n\r\n", status,
		http.StatusText(status),
		strings.Join(append(header, "X-Fault: on purpose"), "\r\n")))
}
