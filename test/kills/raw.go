package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// message is a spans message of a raw client, with its delivery state.
type message struct {
	slot
	spans uint64
	frame []byte
	state state
}

// state is the delivery state of a message, as known to its client.
type state int

const (
	unsent     state = iota // waiting for a connection
	written                 // written to a daemon that is alive, as far as the client knows
	settled                 // settled by the daemon, so never resent
	ambiguous               // possibly delivered to a destination
	unknown                 // no outcome known: counted, or lost with a killed daemon
	connClosed              // written on a connection that the client closed or the daemon ended with a bye; the successor reports no outcome
)

func (s state) String() string {
	return [...]string{"unsent", "written", "settled", "ambiguous", "unknown", "connection closed"}[s]
}

// rawService is the service of all raw clients. They share it because a daemon limits the origins per
// process.
const rawService = "raw"

// rawClient implements docs/protocol.md without the client library and remembers all its messages. One
// goroutine owns it; another goroutine reads from its connection.
type rawClient struct {
	name, socket string

	mu              sync.Mutex
	conn            *net.UnixConn // nil if not connected
	ended           chan struct{} // closed when the connection has been read to its end
	token           string        // token of the current or last connection
	hasDisconnected bool          // the client ended the last connection
	receivedBye     bool          // the daemon ended the last connection with a bye
	messages        []*message    // all messages ever published
	written         []*message    // messages written to the current or last connection
	settledSpans    uint64        // settled spans of the current connection
	flushResponses  uint64        // number of responses to flush requests
	invalidOutcomes []string      // invalid outcomes reported by daemons
}

// publish adds a message and writes all unsent messages.
func (c *rawClient) publish(spans uint64) {
	m := &message{slot: slot{rawService, fmt.Sprint("GET /", c.name, "/", len(c.messages))}, spans: spans}
	key := wire.AppendKey(nil, &span.Key{
		Service: rawService, Operation: "http.request", Resource: m.name, Type: "web", Kind: "server",
	})
	m.frame = wire.BeginSpans(nil)
	for range spans {
		m.frame = wire.AppendWhole(m.frame, key, 1000, time.Now().UnixNano(), span.TopLevel, 1)
	}
	wire.EndSpans(m.frame, 0, int(spans))
	c.messages = append(c.messages, m)
	c.write()
}

// write writes the unsent messages until the daemon stops accepting them.
func (c *rawClient) write() {
	for _, m := range c.messages {
		c.mu.Lock()
		conn := c.conn
		if conn == nil {
			c.mu.Unlock()
			return
		}
		if m.state == unsent {
			m.state = written // set first, because the daemon can settle the message at any time after the write
			c.written = append(c.written, m)
			c.mu.Unlock()
			if _, err := conn.Write(m.frame); err == nil {
				continue
			}
			c.mu.Lock()
			if m.state == written {
				m.state = unsent // the socket did not accept the complete message
			}
			c.written = c.written[:len(c.written)-1]
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// connect connects to the daemon, asks for the outcome of the last connection, and writes the unsent
// messages.
func (c *rawClient) connect() error {
	dialed, err := net.DialTimeout("unix", c.socket, 5*time.Second)
	if err != nil {
		return err
	}
	conn := dialed.(*net.UnixConn)
	hello := wire.Hello{Version: wire.Version, Settled: true, Earlier: c.unsettledToken()}
	hello.Origin = span.Origin{Service: rawService, Env: "kills"}
	if _, err := conn.Write(wire.AppendHello(nil, &hello)); err != nil {
		return errors.Join(err, conn.Close())
	}
	kind, body, err := readMessage(conn)
	if err != nil || kind != wire.TypeWelcome {
		return errors.Join(fmt.Errorf("read welcome: received %s: %w", kind, err), conn.Close())
	}
	welcome, err := wire.DecodeWelcome(body)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	c.mu.Lock()
	c.applyOutcome(hello.Earlier, welcome.Earlier)
	c.conn, c.ended, c.token = conn, make(chan struct{}), welcome.Token
	c.written, c.settledSpans, c.hasDisconnected, c.receivedBye = nil, 0, false, false
	c.mu.Unlock()
	go c.read(conn, c.ended)
	c.write()
	return nil
}

// unsettledToken returns the token of the last connection if some of its messages are not settled.
func (c *rawClient) unsettledToken() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.written {
		if m.state == written {
			return c.token
		}
	}
	return ""
}

// applyOutcome applies the outcome of the last connection, as reported by the next daemon in the
// format of wire.Outcomes. Without a report, messages become unknown. If the client or the daemon had
// ended the connection, they become connClosed, since the next daemon reports such messages only if
// the killed daemon had not read the end of the connection.
func (c *rawClient) applyOutcome(token string, reported []uint64) {
	unreported := unknown
	if (c.hasDisconnected || c.receivedBye) && token != "" {
		unreported = connClosed
	}
	at, ends := uint64(0), map[uint64]bool{0: true}
	for _, m := range c.written {
		at += m.spans
		ends[at] = true
		if m.state != written {
			continue
		}
		if reported == nil {
			m.state = unreported
			continue
		}
		m.state = unsent // beyond the last reported bound
		for bound, outcome := range wire.Outcomes(reported) {
			if at <= bound {
				m.state = []state{settled, ambiguous, unsent}[outcome]
				break
			}
		}
	}
	if len(reported) == 4 && reported[2] == math.MaxInt64 {
		return // unreadable recovery file: its last bound is unknown
	}
	last := uint64(0)
	for bound, outcome := range wire.Outcomes(reported) {
		if bound < last || !ends[bound] && bound < at || last == 0 && outcome == wire.Settled && bound < c.settledSpans {
			c.invalidOutcomes = append(c.invalidOutcomes, fmt.Sprintf("invalid outcome %d for %d spans, %d of them settled",
				reported, at, c.settledSpans))
		}
		last = bound
	}
}

// read reads messages until the connection ends.
func (c *rawClient) read(conn *net.UnixConn, ended chan struct{}) {
	defer close(ended)
	for {
		kind, body, err := readMessage(conn)
		c.mu.Lock()
		if err != nil {
			c.conn = nil
			c.mu.Unlock()
			conn.Close()
			return
		}
		switch kind {
		case wire.TypeFeatures:
			if features, err := wire.DecodeFeatures(body); err == nil {
				c.settle(features.Settled)
			}
		case wire.TypeFlush:
			c.flushResponses++
		case wire.TypeBye:
			c.conn, c.receivedBye = nil, true // the daemon accounts for all spans unless it is killed first
		}
		c.mu.Unlock()
	}
}

// settle marks the first spans of the connection as settled.
func (c *rawClient) settle(spans uint64) {
	c.settledSpans = max(c.settledSpans, spans)
	at := uint64(0)
	for _, m := range c.written {
		if at += m.spans; at <= spans && m.state == written {
			m.state = settled
		}
	}
}

// requestFlush sends a flush request.
func (c *rawClient) requestFlush() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		_, _ = conn.Write(wire.AppendFlush(nil, &wire.Flush{ID: 1})) // without a connection there is no response
	}
}

// disconnect closes the connection gracefully and waits until the daemon has read everything.
func (c *rawClient) disconnect() {
	c.mu.Lock()
	conn, ended := c.conn, c.ended
	c.hasDisconnected = conn != nil
	c.mu.Unlock()
	if conn == nil {
		return
	}
	_ = conn.CloseWrite()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		conn.Close()
	}
}

// isOpen reports whether some messages are not settled yet.
func (c *rawClient) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.messages {
		if m.state == unsent || m.state == written {
			return true
		}
	}
	return false
}

func readMessage(conn net.Conn) (wire.Type, []byte, error) {
	header := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(conn, header); err != nil {
		return 0, nil, err
	}
	message := make([]byte, wire.FrameLength(header))
	if _, err := io.ReadFull(conn, message); err != nil {
		return 0, nil, err
	}
	return wire.Split(message)
}
