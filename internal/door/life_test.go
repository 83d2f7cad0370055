package door

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// plainDoor takes every POST, counts one span of it when it goes on, and hands back the answer.
type plainDoor struct {
	server *Server
	begun  int
}

type plainRequest struct {
	*Held
	door *plainDoor
}

func (d *plainDoor) Open(h *Held) (Request, *Reply) {
	if h.Method != http.MethodPost {
		return nil, nil
	}
	return &plainRequest{h, d}, nil
}

func (*plainDoor) Serve(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
func (*plainDoor) Learn() <-chan struct{}                       { return nil }

func (r *plainRequest) Read(broken error) *Reply {
	if broken != nil {
		return &Reply{Write: func(w http.ResponseWriter) error {
			w.WriteHeader(http.StatusBadRequest)
			return nil
		}}
	}
	return nil
}

func (r *plainRequest) Begin() Parcel {
	r.door.begun++
	r.Publish(r.Body.Bytes, oneSpan, func(yield func(Going) bool) { yield(Going{Span: 7, TraceLow: 7}) })
	return Parcel{Method: r.Method, Target: r.Target, Fields: http1.Map{}, Message: r.Body.Bytes}
}

func (r *plainRequest) Answer(a *Answer) *Reply {
	return &Reply{Write: a.HandBack, IsFinal: a.Status == http.StatusOK}
}

func (r *plainRequest) Unanswered(error) *Reply { return &Reply{} }

// oneSpan is a batch of one span.
func oneSpan(yield func(span.Origin, *span.Batch) bool) {
	b := &span.Batch{Keys: wire.AppendKey(nil, &span.Key{Resource: "GET /"})}
	b.Snapshots = []span.Snapshot{{
		KeyEnd: uint32(len(b.Keys)), Duration: 1000, End: time.Now().UnixNano(),
		Weight: 1,
	}}
	yield(span.Origin{}, b)
}

func newPlainDoor(t *testing.T,
	reach func(context.Context) (net.Conn, error),
) *plainDoor {
	t.Helper()
	counting := aggregate.DefaultConfig()
	counting.Deliver = func(*aggregate.Sealed) {}
	aggregator, err := aggregate.New(counting)
	if err != nil {
		t.Fatal(err)
	}
	admitting := admit.DefaultConfig()
	admitting.Aggregator = aggregator
	config := DefaultConfig()
	config.MaxConnections, config.MaxBody, config.MaxBodyBytes = 4, 1<<20, 4<<20
	config.Log = slog.New(slog.DiscardHandler)
	if config.Admit, err = admit.New(admitting); err != nil {
		t.Fatal(err)
	}
	d := &plainDoor{}
	d.server, err = New(d, &config, Setup{
		Results: []string{"any"}, Behind: Behind{Address: "behind", Reach: reach},
		Header: time.Hour, Read: time.Hour, Write: time.Hour, Between: time.Hour,
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestARequestThatNobodyGoesOnWithIsEnded: its connection is closed before net/http's handler has
// it. What it holds is given back, and its body is known when it comes again.
func TestARequestThatNobodyGoesOnWithIsEnded(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() { _, _ = http.ReadRequest(bufio.NewReader(theirs)) }() // and no answer
	d := newPlainDoor(t, func(context.Context) (net.Conn, error) { return ours, nil })
	s := d.server
	sender, _ := net.Pipe()
	c := s.plain.NewConn(&conns.Conn{Conn: sender})
	h := s.Hold(c)
	h.Method, h.request = http.MethodPost, &plainRequest{h, d}
	body, err := s.Bodies.Read(strings.NewReader("body"), 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h.Answer(body, nil) || s.Stats().BufferedBytes == 0 || s.Stats().Remembered != 1 {
		t.Fatalf("it is answered, or not counted: %+v", s.Stats())
	}
	h.Abandon()
	if err := ours.SetDeadline(time.Now()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection that it went on by is open: %v", err)
	}
	known := s.counted.Once(s.counted.Sum([]byte("body")), nil)
	if s.Stats().BufferedBytes != 0 || !known || s.Results([]string{"any"}, 0)["any"] != 1 {
		t.Errorf("known %t; %+v", known, s.Stats())
	}
}

// TestARequestIsBegunOnce, however often a connection is made for it.
func TestARequestIsBegunOnce(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer behind.Close()
	d := newPlainDoor(t, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", behind.Listener.Addr().String())
	})
	h := d.server.Hold(nil)
	h.Method, h.Target, h.request = http.MethodPost, "/", &plainRequest{h, d}
	h.Body = &bodies.Body{Bytes: []byte("body")}
	for range 2 {
		c, err := d.server.upstreams.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.start(c)
		c.Close()
	}
	if d.begun != 1 {
		t.Errorf("it was begun %d times", d.begun)
	}
	h.Abandon()
}

// listening gives one connection to who accepts.
type listening struct {
	net.Listener
	conn net.Conn
}

func (l listening) Accept() (net.Conn, error) { return l.conn, nil }

// TestARequestOfAConnectionThatIsOverIsNotTaken: net/http has read it, and its connection was
// closed as an idle one meanwhile. Its sender sends it again, maybe to the next daemon. One that
// has left by itself may not: its request is taken.
func TestARequestOfAConnectionThatIsOverIsNotTaken(t *testing.T) {
	serve := func(d *plainDoor, end func(*http1.Conn)) (panicked any) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		on := d.server.listeners.Of
		on.Listener = listening{conn: ours}
		accepted, _ := on.Accept()
		conn := accepted.(*http1.Conn)
		end(conn)
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
		defer func() { panicked = recover() }()
		d.server.serve(httptest.NewRecorder(), r.WithContext(http1.ConnContext(t.Context(), conn)))
		return nil
	}
	away := func(context.Context) (net.Conn, error) { return nil, errors.New("away") }
	d := newPlainDoor(t, away)
	taken := func() uint64 { return d.server.Results([]string{"any"}, 0)["any"] }
	if p := serve(d, func(c *http1.Conn) {
		d.server.limiter.CloseAll()
	}); p != http.ErrAbortHandler || taken() != 0 {
		t.Errorf("%v, and taken are %d", p, taken())
	}
	if serve(d, func(c *http1.Conn) { c.Close() }); taken() != 1 {
		t.Errorf("taken are %d", taken())
	}
}

// TestAnAnswerThatIsNoEndIsNone: what was counted is known again where its answer was not
// written, or says try again, and over HTTP/2, where nothing shows that it was read, in any case.
func TestAnAnswerThatIsNoEndIsNone(t *testing.T) {
	d := newPlainDoor(t, nil)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	plain := d.server.plain.NewConn(&conns.Conn{Conn: ours})
	streams := d.server.plain.NewConn(&conns.Conn{Conn: ours})
	streams.HTTP2.Store(true)
	for _, c := range []struct {
		on                          *http1.Conn
		isWritten, isFinal, isKnown bool
	}{
		{plain, true, true, false},
		{plain, false, true, true},
		{plain, true, false, true},
		{plain, false, false, true},
		{streams, true, true, true},
		{streams, false, true, true},
		{streams, true, false, true},
		{streams, false, false, true},
	} {
		h := d.server.Hold(c.on)
		h.sum = 7
		d.server.counted.Once(h.sum, func(counted func()) { counted() })
		h.awaitReceipt(c.isWritten, c.isFinal)
		plain.Receipt.NextRequest() // so the answer before was read
		if known := d.server.counted.Once(7, func(func()) {}); known != c.isKnown {
			t.Errorf("%+v: known %v", c, known)
		} else if known {
			d.server.counted.Close(7, true)
		}
	}
}

// TestWhatGoesOnFillsItsFrames: each read of what goes on has as much as there is room for, whatever
// stands before the message, and the last one says that it is.
func TestWhatGoesOnFillsItsFrames(t *testing.T) {
	for _, message := range [][]byte{{}, {1}, bytes.Repeat([]byte("span"), 100)} {
		for _, before := range [][]byte{nil, {0, 0, 0, 1, 0}} {
			whole := append(bytes.Clone(before), message...)
			for room := 1; room <= len(whole)+1; room++ {
				out := &outgoing{pieces: [2][]byte{before, message}}
				from, _ := out.newReader()
				var got []byte
				for err := error(nil); err == nil; {
					piece := make([]byte, room)
					var n int
					n, err = from.Read(piece)
					got = append(got, piece[:n]...)
					if isLast := len(got) == len(whole); isLast != errors.Is(err, io.EOF) || !isLast &&
						n != room {
						t.Fatalf("%d of %d bytes are read into room for %d: %v", n, len(whole), room, err)
					}
				}
				if !bytes.Equal(got, whole) {
					t.Errorf("read %x, want %x", got, whole)
				}
				from.Close()
				out.readers.Wait()
			}
		}
	}
}

// TestAFlagIsTrueUnlessItSaysFalse, as the agent reads it.
func TestAFlagIsTrueUnlessItSaysFalse(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "false": false, "0": false, "true": true, "1": true,
		"yes": true,
	} {
		if IsTrue(value) != want {
			t.Errorf("%q is %v", value, !want)
		}
	}
}

// carrier is a transport that answers with a status, and a body that does not come.
type carrier struct {
	status int
	asked  *http.Request
	body   io.ReadCloser
}

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked = r
	if r.Body != nil {
		r.Body.Close()
	}
	return &http.Response{StatusCode: c.status, Body: c.body, Header: http.Header{}}, nil
}

// TestAnOddStatusOfATransportIsNoAnswer, and what has no message goes on with that length.
func TestAnOddStatusOfATransportIsNoAnswer(t *testing.T) {
	for status, isAnswer := range map[int]bool{20: false, 99: false, 101: false, 200: true, 503: true} {
		d := newPlainDoor(t, nil)
		_, silent := net.Pipe()
		to := &carrier{status: status, body: silent}
		d.server.transport = to
		h := d.server.Hold(nil)
		h.Method, h.Target, h.Body = http.MethodPost, "/", &bodies.Body{}
		h.request = &plainRequest{h, d}
		if reply := h.roundTrip(t.Context()); isAnswer != (reply.Write != nil) {
			t.Errorf("%d is taken for an answer: %t", status, reply.Write != nil)
		}
		if to.asked.Body != http.NoBody || to.asked.ContentLength != 0 {
			t.Errorf("an empty message goes on with length %d of %T", to.asked.ContentLength, to.asked.Body)
		}
		h.Abandon()
	}
}
