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

// crossing is a proxy socket between the daemon and an agent. A test defines how it treats each
// connection, byte by byte.
type crossing struct {
	t      *testing.T
	path   string
	agent  string                      // agent's socket
	stats  atomic.Pointer[connHandler] // handler for connections with a payload
	info   atomic.Pointer[connHandler] // handler for all other connections
	mu     sync.Mutex
	closed func()
}

// connHandler handles one connection, from which nothing has been read yet.
type connHandler func(c *crossing, in *bufio.Reader, conn *net.UnixConn)

// newCrossing listens next to an agent's socket.
func newCrossing(t *testing.T, agent string) *crossing {
	c := &crossing{t: t, path: agent + "x", agent: agent, closed: func() {}}
	c.handleStats(forwarding)
	c.handleInfo(forwarding)
	c.open()
	t.Cleanup(c.close)
	return c
}

// handleStats sets the handler of later connections with a payload.
func (c *crossing) handleStats(m connHandler) { c.stats.Store(&m) }

// handleInfo sets the handler of later requests for the agent's features.
func (c *crossing) handleInfo(m connHandler) { c.info.Store(&m) }

// open creates the socket file and listens.
func (c *crossing) open() {
	_ = os.Remove(c.path)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: c.path})
	if err != nil {
		c.t.Error(err)
		return
	}
	listener.SetUnlinkOnClose(false) // like the real agent
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

// close closes all listeners and leaves the socket file, like a killed process.
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

// forwarding forwards the request to the agent and its response to the daemon.
func forwarding(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
	_, _ = conn.Write(c.ask(in, conn))
}

// invite reads the head of a request, and sends 100 Continue if there is a body.
func invite(in *bufio.Reader, conn net.Conn) (*http.Request, error) {
	request, err := http.ReadRequest(in)
	if err == nil && request.Header.Get("Expect") != "" {
		request.Header.Del("Expect")
		_, err = conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	return request, err
}

// ask forwards a request to the agent and returns the unmodified response.
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
	response, _ := io.ReadAll(agent)
	return response
}

// hanging reads without responding, like a stopped process.
func hanging(_ *crossing, in *bufio.Reader, _ *net.UnixConn) { _, _ = io.Copy(io.Discard, in) }

// discarding reads the body and sends nothing until the client disconnects.
func discarding(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
	if _, err := invite(in, conn); err == nil {
		hanging(c, in, conn)
	}
}

// cutBeforeReading reads the request line and the headers, and disconnects.
func cutBeforeReading(_ *crossing, in *bufio.Reader, _ *net.UnixConn) { _, _ = http.ReadRequest(in) }

// tooLate lets the agent count the request, but responds only after the client has disconnected.
func tooLate(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
	response := c.ask(in, conn)
	_, _ = io.Copy(io.Discard, in)
	_, _ = conn.Write(response)
}

// cutWhileReading reads a part of the body, and disconnects.
func cutWhileReading(_ *crossing, in *bufio.Reader, conn *net.UnixConn) {
	if _, err := invite(in, conn); err == nil {
		_, _ = io.ReadFull(in, make([]byte, 1000))
	}
}

// cutAfterReading reads the whole request, and disconnects without counting it.
func cutAfterReading(_ *crossing, in *bufio.Reader, conn *net.UnixConn) {
	if request, err := invite(in, conn); err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
}

// responding reads the request and responds with these bytes.
func responding(bytes string) connHandler {
	return func(c *crossing, in *bufio.Reader, conn *net.UnixConn) {
		cutAfterReading(c, in, conn)
		_, _ = conn.Write([]byte(bytes))
	}
}

// respondingStatus reads the request and responds with a status, without counting it.
func respondingStatus(status int, header ...string) connHandler {
	return responding(fmt.Sprintf("HTTP/1.1 %d %s\r\n%s\r\nContent-Length: 0\r\n\r\n", status,
		http.StatusText(status),
		strings.Join(append(header, "X-Fault: on purpose"), "\r\n")))
}
