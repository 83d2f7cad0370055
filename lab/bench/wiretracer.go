package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// writeSize is the size of a write to the socket, the same as the client's.
const writeSize = 64 << 10

// wireTracer writes native messages. It encodes them before it starts if possible; a workload
// in which every key is new is encoded while sending.
type wireTracer struct {
	result
	conn     *net.UnixConn
	read     chan error // why reading from the daemon ended
	encoder  encoder
	messages []message // messages sent in rotation; empty if every key is new
	next     int
	fresh    message // reused message if every key is new

	buffer   []byte // data to be written
	buffered uint64 // number of spans in buffer
}

// message is a spans message, preceded by a define message if needed, with the offsets of its
// spans' end times.
type message struct {
	bytes []byte
	ends  []int // offsets of the end times, one per span
}

const (
	// minMessageSpans is the minimum number of spans that are encoded before the start. It is
	// large enough for each key to have many durations, and small enough for the messages to
	// stay in the processor's cache.
	minMessageSpans = 8192
	// defineKeys is the number of keys per define message.
	defineKeys = 256
)

func connectWire(j *job, number int, origin span.Origin, generator *workload.Generator) (*wireTracer, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: j.Socket})
	if err != nil {
		return nil, fmt.Errorf("connect tracer: %w", err)
	}
	_ = conn.SetWriteBuffer(wire.SendBuffer) // same size as the client's
	t := &wireTracer{
		conn: conn, read: make(chan error, 1), result: newResult(),
		encoder: encoder{
			generator: generator, batch: make([]workload.Snapshot, j.Batch),
			isNumbered: j.Keys == Numbered,
		},
	}
	if err := t.greet(origin); err != nil {
		return nil, err
	}
	keys := generator.Keys()
	if len(keys) == 0 {
		return t, nil
	}
	if t.encoder.isNumbered {
		if err := t.define(keys); err != nil {
			return nil, err
		}
	}
	// Encoded messages are not modified from here on. All connections of a process share them,
	// and each begins at another message.
	for len(j.shared)*j.Batch < max(minMessageSpans, len(keys)) {
		j.shared = append(j.shared, *t.encoder.encode(&message{}))
	}
	t.messages, t.next = j.shared, number*len(j.shared)/max(j.All, 1)
	return t, nil
}

func (t *wireTracer) greet(origin span.Origin) error {
	hello := wire.AppendHello(nil, &wire.Hello{
		Version: wire.Version, Client: "spanstatsd-bench",
		Origin: origin,
	})
	if _, err := t.conn.Write(hello); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	header := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(t.conn, header); err != nil {
		return fmt.Errorf("read welcome: %w", err)
	}
	answer := make([]byte, wire.FrameLength(header))
	if _, err := io.ReadFull(t.conn, answer); err != nil {
		return fmt.Errorf("read welcome: %w", err)
	}
	if kind, _, err := wire.Split(answer); err != nil || kind != wire.TypeWelcome {
		return fmt.Errorf("read welcome: the daemon answered %s (%q)", kind, answer)
	}
	go func() {
		rest, err := io.ReadAll(t.conn)
		if kind, body, splitErr := wire.Split(rest[min(len(rest), wire.HeaderLen):]); splitErr == nil &&
			kind == wire.TypeBye {
			if bye, byeErr := wire.DecodeBye(body); byeErr == nil {
				err = errors.Join(err, fmt.Errorf("the daemon sent bye, %s: %s", bye.Reason, bye.Detail))
			}
		}
		t.read <- err
	}()
	return nil
}

// define sends the keys of the workload, numbered in their order.
func (t *wireTracer) define(keys []span.Key) error {
	all := make([]workload.Snapshot, len(keys))
	for i := range keys {
		all[i].Key = &keys[i]
	}
	for first := 0; first < len(all); first += defineKeys {
		if _, err := t.conn.Write(t.encoder.define(nil, first,
			all[first:min(first+defineKeys, len(all))])); err != nil {
			return fmt.Errorf("define keys: %w", err)
		}
	}
	return nil
}

// publish copies a batch with current end times into the buffer. Its measured duration includes
// the time that writing waits for the daemon.
func (t *wireTracer) publish(now time.Time) error {
	m := &t.fresh
	if len(t.messages) == 0 {
		t.encoder.encode(m)
	} else {
		m = &t.messages[t.next]
		if t.next++; t.next == len(t.messages) {
			t.next = 0
		}
	}
	if len(t.buffer)+len(m.bytes) > writeSize {
		if err := t.flush(); err != nil {
			return err
		}
	}
	start := len(t.buffer)
	t.buffer = append(t.buffer, m.bytes...)
	copied, end := t.buffer[start:], uint64(now.UnixNano())
	for _, at := range m.ends {
		binary.BigEndian.PutUint64(copied[at:], end)
	}
	t.Attempted += uint64(len(m.ends))
	t.buffered += uint64(len(m.ends))
	t.Publish.add(time.Since(now))
	return nil
}

func (t *wireTracer) flush() error {
	if len(t.buffer) == 0 {
		return nil
	}
	_, err := t.conn.Write(t.buffer)
	t.buffer = t.buffer[:0]
	if err != nil {
		select {
		case readErr := <-t.read:
			return fmt.Errorf("write spans: %w", errors.Join(err, readErr))
		case <-time.After(time.Second):
			return fmt.Errorf("write spans: %w", err)
		}
	}
	t.Handed += t.buffered
	t.buffered = 0
	return nil
}

func (t *wireTracer) close() error {
	defer t.conn.Close()
	if _, err := t.conn.Write(wire.AppendBye(nil, &wire.Bye{Reason: "closed"})); err != nil {
		return fmt.Errorf("send bye: %w", err)
	}
	select {
	case err := <-t.read:
		return err
	case <-time.After(limit):
		return fmt.Errorf("send bye: the daemon did not close its end within %s", limit)
	}
}

// encoder encodes messages of a workload.
type encoder struct {
	generator  *workload.Generator
	batch      []workload.Snapshot
	isNumbered bool
	key        []byte
}

// encode encodes the next message into the memory of m.
func (e *encoder) encode(m *message) *message {
	e.generator.Fill(e.batch, time.Now().UnixNano())
	m.bytes, m.ends = m.bytes[:0], m.ends[:0]
	areNew := e.batch[0].Index < 0
	if e.isNumbered && areNew {
		m.bytes = e.define(m.bytes, 0, e.batch) // defined for this batch only, as the Go client does per buffer
	}
	start := len(m.bytes)
	m.bytes = wire.BeginSpans(m.bytes)
	for i := range e.batch {
		s := &e.batch[i]
		if e.isNumbered {
			number := s.Index
			if areNew {
				number = i
			}
			m.bytes = wire.AppendNumbered(m.bytes, uint32(number), s.Duration, s.End, s.Flags, 1)
		} else {
			e.key = wire.AppendKey(e.key[:0], s.Key)
			m.bytes = wire.AppendWhole(m.bytes, e.key, s.Duration, s.End, s.Flags, 1)
		}
		m.ends = append(m.ends, len(m.bytes)-endBack)
	}
	wire.EndSpans(m.bytes[start:], 0, len(e.batch))
	return m
}

// endBack is the offset of a snapshot's end time before the end of the snapshot: eight bytes,
// followed by one byte of flags.
const endBack = 9

// define appends a message that assigns numbers to the keys of some snapshots.
func (e *encoder) define(dst []byte, first int, snapshots []workload.Snapshot) []byte {
	start := len(dst)
	dst = wire.BeginDefine(dst)
	for i := range snapshots {
		e.key = wire.AppendKey(e.key[:0], snapshots[i].Key)
		dst = wire.AppendDefinition(dst, uint32(first+i), e.key)
	}
	wire.EndDefine(dst[start:], 0, len(snapshots))
	return dst
}
