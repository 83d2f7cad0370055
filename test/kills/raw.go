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

// message is a spans message of a raw client, and what its client knows of it.
type message struct {
	slot
	spans uint64
	frame []byte
	fate  fate
}

// fate is what a client knows of a message.
type fate int

const (
	waits     fate = iota // for a connection
	given                 // to a daemon that lives, as far as the client knows
	settled               // and so not to be handed over again
	ambiguous             // a destination may have it
	unknown               // no daemon knows: it may be counted, or lost with one
	left                  // to a daemon that has seen its client leave, or said bye; the next knows no more
)

// rawService is the service of all raw clients: a daemon gives one process few origins.
const rawService = "raw"

// rawClient speaks the protocol as docs/protocol.md says it, without any library, and remembers each of its
// messages until the end. Its owner is one goroutine; another one reads.
type rawClient struct {
	name, socket string

	mu       sync.Mutex
	conn     *net.UnixConn // nil: none
	ended    chan struct{} // closed when the connection is nothing more to be read from
	token    string        // of the connection, or of the last one, to ask for
	hasLeft  bool          // the last one was ended by this client
	heardBye bool          // or by a daemon that said so
	messages []*message    // all there ever were
	given    []*message    // to the connection, or the last one
	told     uint64        // spans of the connection that are settled
	reported uint64        // answers to flushes
	wrong    []string      // what a daemon said that it must not say
}

// publish has another message, and writes what waits.
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

// write writes what waits, until a daemon does not take it.
func (c *rawClient) write() {
	for _, m := range c.messages {
		c.mu.Lock()
		conn := c.conn
		if conn == nil {
			c.mu.Unlock()
			return
		}
		if m.fate == waits {
			m.fate = given // before the daemon can say anything of it
			c.given = append(c.given, m)
			c.mu.Unlock()
			if _, err := conn.Write(m.frame); err == nil {
				continue
			}
			c.mu.Lock()
			if m.fate == given {
				m.fate = waits // the socket did not take it to its last byte
			}
			c.given = c.given[:len(c.given)-1]
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// connect connects, asks what became of the last connection, and writes what waits.
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
	c.hear(hello.Earlier, welcome.Earlier)
	c.conn, c.ended, c.token = conn, make(chan struct{}), welcome.Token
	c.given, c.told, c.hasLeft, c.heardBye = nil, 0, false, false
	c.mu.Unlock()
	go c.read(conn, c.ended)
	c.write()
	return nil
}

// asksFor is the token to say, where something is not settled.
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

// hear applies what a daemon says of the last connection. Whoever had left before hears of nothing but what
// the daemon that died had not seen leave, and behind a bye nobody hears of anything if that daemon ended in
// order.
func (c *rawClient) hear(asked string, says []uint64) {
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
		if says == nil {
			m.fate = otherwise
			continue
		}
		m.fate = waits // behind the last bound
		for upTo, what := range wire.Outcomes(says) {
			if at <= upTo {
				m.fate = []fate{settled, ambiguous, waits}[what]
				break
			}
		}
	}
	if len(says) == 4 && says[2] == math.MaxInt64 {
		return // its file can't be read, so nobody knows how far it was
	}
	last := uint64(0)
	for upTo, what := range wire.Outcomes(says) {
		if upTo < last || !ends[upTo] && upTo < at || last == 0 && what == wire.Settled && upTo < c.told {
			c.wrong = append(c.wrong, fmt.Sprintf("of %d spans, of which %d were settled, a daemon says %d",
				at, c.told, says))
		}
		last = upTo
	}
}

// read reads until the connection ends.
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
			c.conn, c.heardBye = nil, true // all is in its books, unless it is killed before it is done
		}
		c.mu.Unlock()
	}
}

// settle notes that so many spans are settled.
func (c *rawClient) settle(told uint64) {
	c.told = max(c.told, told)
	at := uint64(0)
	for _, m := range c.given {
		if at += m.spans; at <= told && m.fate == given {
			m.fate = settled
		}
	}
}

// report asks for a report.
func (c *rawClient) report() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		_, _ = conn.Write(wire.AppendFlush(nil, &wire.Flush{ID: 1})) // who does not take it does not answer
	}
}

// leave ends the connection in order, and waits until the daemon has read all of it.
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

// isOpen says whether something is not settled yet.
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
