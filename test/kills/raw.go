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
	fate  fate
}

// fate is the delivery state of a message, as known to its client.
type fate int

const (
	waits     fate = iota // waiting for a connection
	given                 // written to a daemon that is alive, as far as the client knows
	settled               // acknowledged, so never resent
	ambiguous             // possibly delivered to a destination
	unknown               // no outcome known: counted, or lost with a killed daemon
	left                  // written to a daemon that saw the client leave or said bye; its successor has no outcome for it
)

// rawService is the service of all raw clients. They share it because a daemon limits the origins per
// process.
const rawService = "raw"

// rawClient implements docs/protocol.md without the client library and remembers all its messages. One
// goroutine owns it; another one reads from its connection.
type rawClient struct {
	name, socket string

	mu       sync.Mutex
	conn     *net.UnixConn // nil if not connected
	ended    chan struct{} // closed when the connection has been read to its end
	token    string        // token of the current or last connection
	hasLeft  bool          // the client ended the last connection
	heardBye bool          // the daemon ended the last connection with a bye
	messages []*message    // all messages ever published
	given    []*message    // messages written to the current or last connection
	told     uint64        // settled spans of the current connection
	reported uint64        // number of responses to flush requests
	wrong    []string      // invalid outcomes reported by daemons
}

// publish adds a message and writes all waiting messages.
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

// write writes the waiting messages until the daemon stops accepting them.
func (c *rawClient) write() {
	for _, m := range c.messages {
		c.mu.Lock()
		conn := c.conn
		if conn == nil {
			c.mu.Unlock()
			return
		}
		if m.fate == waits {
			m.fate = given // set first, because the daemon can settle the message at any time after the write
			c.given = append(c.given, m)
			c.mu.Unlock()
			if _, err := conn.Write(m.frame); err == nil {
				continue
			}
			c.mu.Lock()
			if m.fate == given {
				m.fate = waits // the socket did not accept the whole message
			}
			c.given = c.given[:len(c.given)-1]
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// connect connects to the daemon, asks for the outcome of the last connection, and writes the waiting
// messages.
func (c *rawClient) connect() error {
	dialled, err := net.DialTimeout("unix", c.socket, 5*time.Second)
	if err != nil {
		return err
	}
	conn := dialled.(*net.UnixConn)
	hello := wire.Hello{Version: wire.Version, Settled: true, Earlier: c.asksFor()}
	hello.Origin = span.Origin{Service: rawService, Env: "kills"}
	if _, err := conn.Write(wire.AppendHello(nil, &hello)); err != nil {
		return errors.Join(err, conn.Close())
	}
	kind, body, err := readMessage(conn)
	if err != nil || kind != wire.TypeWelcome {
		return errors.Join(fmt.Errorf("no welcome but %s: %w", kind, err), conn.Close())
	}
	welcome, err := wire.DecodeWelcome(body)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	c.mu.Lock()
	c.applyOutcome(hello.Earlier, welcome.Earlier)
	c.conn, c.ended, c.token = conn, make(chan struct{}), welcome.Token
	c.given, c.told, c.hasLeft, c.heardBye = nil, 0, false, false
	c.mu.Unlock()
	go c.read(conn, c.ended)
	c.write()
	return nil
}

// asksFor returns the token of the last connection if some of its messages are not settled.
func (c *rawClient) asksFor() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.given {
		if m.fate == given {
			return c.token
		}
	}
	return ""
}

// applyOutcome applies the outcome of the last connection, as reported by the next daemon in the format
// of wire.Outcomes. Without a report, messages become unknown. If the client or the daemon had ended
// the connection, they become left, since the next daemon reports such messages only if the killed
// daemon had not read the end.
func (c *rawClient) applyOutcome(asked string, reported []uint64) {
	otherwise := unknown
	if (c.hasLeft || c.heardBye) && asked != "" {
		otherwise = left
	}
	at, ends := uint64(0), map[uint64]bool{0: true}
	for _, m := range c.given {
		at += m.spans
		ends[at] = true
		if m.fate != given {
			continue
		}
		if reported == nil {
			m.fate = otherwise
			continue
		}
		m.fate = waits // beyond the last reported bound
		for upTo, what := range wire.Outcomes(reported) {
			if at <= upTo {
				m.fate = []fate{settled, ambiguous, waits}[what]
				break
			}
		}
	}
	if len(reported) == 4 && reported[2] == math.MaxInt64 {
		return // unreadable recovery file: its last bound is unknown
	}
	last := uint64(0)
	for upTo, what := range wire.Outcomes(reported) {
		if upTo < last || !ends[upTo] && upTo < at || last == 0 && what == wire.Settled && upTo < c.told {
			c.wrong = append(c.wrong, fmt.Sprintf("of %d spans, of which %d were settled, a daemon says %d",
				at, c.told, reported))
		}
		last = upTo
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
			if said, err := wire.DecodeFeatures(body); err == nil {
				c.settle(said.Settled)
			}
		case wire.TypeFlush:
			c.reported++
		case wire.TypeBye:
			c.conn, c.heardBye = nil, true // the daemon accounts for all spans unless it is killed first
		}
		c.mu.Unlock()
	}
}

// settle marks the first told spans of the connection as settled.
func (c *rawClient) settle(told uint64) {
	c.told = max(c.told, told)
	at := uint64(0)
	for _, m := range c.given {
		if at += m.spans; at <= told && m.fate == given {
			m.fate = settled
		}
	}
}

// report sends a flush request.
func (c *rawClient) report() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		_, _ = conn.Write(wire.AppendFlush(nil, &wire.Flush{ID: 1})) // without a connection there is no response
	}
}

// leave closes the connection gracefully and waits until the daemon has read everything.
func (c *rawClient) leave() {
	c.mu.Lock()
	conn, ended := c.conn, c.ended
	c.hasLeft = conn != nil
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
		if m.fate == waits || m.fate == given {
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
