package http1

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

// room takes everything that is plain, and answers how long its body is.
type room struct {
	bodies bodies.Pool
	server Server
	isLast bool                 // it answers no more behind a request
	take   func(*Conn) Exchange // what it takes, where it is not answering
	begun  *kept                // what it hands over in the place of an answer, where there is one
	came   func()               // a request has
	asked  func()               // somebody has asked whether it stops

	answered   int
	isStopping bool
}

func newRoom() *room {
	r := &room{bodies: bodies.NewPool(1<<20, 1<<20)}
	r.server = Server{
		Handler: r, Limiter: conns.NewLimiter(1), Bodies: &r.bodies, Counted: bodies.NewCounted(),
		Header: time.Minute, Read: time.Minute, Write: time.Minute, Between: time.Minute,
	}
	return r
}

func (r *room) Take(c *Conn, _ *Request) Exchange {
	if r.came != nil {
		r.came()
	}
	if r.begun != nil {
		return r.begun
	}
	if r.take != nil {
		return r.take(c)
	}
	return &answering{r, c}
}

func (r *room) IsStopping() bool {
	if r.asked != nil {
		r.asked()
	}
	return r.isStopping
}

// answering is a request that is answered.
type answering struct {
	*room
	conn *Conn
}

func (r *answering) Answer(body *bodies.Body, _ error) bool {
	defer body.Release()
	r.answered++
	if r.isLast {
		r.conn.EndBehind()
	}
	w := r.conn.NewWriter()
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte("done"))
	return w.FlushError() == nil
}

func (*answering) Abandon() {}

// TestAConnectionThatEndsStaysEnded: net/http looks for the beginning of HTTP/2 first, takes
// what that gives for none, and reads again. What was answered last says that it is the last.
func TestAConnectionThatEndsStaysEnded(t *testing.T) {
	r := newRoom()
	r.isLast = true
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := r.server.NewConn(&conns.Conn{Conn: ours})
	ended := make(chan error, 2)
	go func() {
		for range 2 {
			_, err := c.Read(make([]byte, 64))
			ended <- err
		}
	}()
	const request = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
	if _, err := io.WriteString(theirs, request+request); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(theirs), nil)
	if err != nil || answer.StatusCode != http.StatusAccepted || !answer.Close ||
		answer.Header.Get("Date") == "" {
		t.Errorf("answered %+v, %v", answer, err)
	}
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	for range 2 {
		select {
		case err := <-ended:
			if !errors.Is(err, io.EOF) {
				t.Errorf("it goes on: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it waits for more")
		}
	}
	if r.bodies.Held() != 0 || r.answered != 1 {
		t.Errorf("%d bytes are held, %d requests are answered", r.bodies.Held(), r.answered)
	}
}

// passing is a request that is answered as who is behind has answered it, while a stop begins.
type passing struct{ *answering }

func (r *passing) Answer(body *bodies.Body, _ error) bool {
	defer body.Release()
	r.isStopping = true
	return r.conn.NewWriter().WriteWhole([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) == nil
}

// TestWhatHasComeBehindAnAnswerIsNetHTTPsAtAStop: the answer did not say that it is the last.
func TestWhatHasComeBehindAnAnswerIsNetHTTPsAtAStop(t *testing.T) {
	r := newRoom()
	r.take = func(c *Conn) Exchange { return &passing{&answering{r, c}} }
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := r.server.NewConn(&conns.Conn{Conn: ours})
	const first = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
	const second = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	go func() {
		_, _ = io.WriteString(theirs, first+second)
		_, _ = io.Copy(io.Discard, theirs)
	}()
	came := make([]byte, len(second))
	if n, err := io.ReadFull(c, came); err != nil || string(came) != second {
		t.Errorf("net/http has %q, %v", came[:n], err)
	}
}

// listening gives one connection to who accepts.
type listening struct {
	net.Listener
	conn net.Conn
}

func (l listening) Accept() (net.Conn, error) { return l.conn, nil }

// admitted is a connection that the room's limiter has admitted.
func (r *room) admitted(t *testing.T) (c *Conn, theirs net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	l := conns.Listener{Listener: listening{conn: ours}, Limiter: r.server.Limiter, Wrap: r.server.Wrap}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return accepted.(*Conn), theirs
}

// TestARequestOfAConnectionThatIsOverIsNotBegun: it was read, and then its connection was
// closed for a newcomer. Its sender hears nothing and sends it again: so it must not be taken here.
func TestARequestOfAConnectionThatIsOverIsNotBegun(t *testing.T) {
	r := newRoom()
	c, theirs := r.admitted(t)
	r.came = func() { r.admitted(t) } // one more than there may be
	go func() {
		_, _ = io.WriteString(theirs, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	}()
	if _, err := c.Read(make([]byte, 64)); !errors.Is(err, io.EOF) || r.answered != 0 {
		t.Errorf("%d requests were answered: %v", r.answered, err)
	}
	c.Close() // as net/http does
	if r.bodies.Held() != 0 {
		t.Errorf("%d bytes are held", r.bodies.Held())
	}
}

// kept is a request that was begun.
type kept struct{ isAbandoned bool }

func (k *kept) Answer(body *bodies.Body, _ error) bool {
	body.Release()
	return false
}

func (k *kept) Abandon() { k.isAbandoned = true }

// TestARequestThatIsHandedOverIsUnderWay: net/http takes its connection for an idle one until it
// has read what is handed over, and may close it meanwhile. The request was counted, so its sender
// must hear of it; and whoever ends the connection behind it ends it.
func TestARequestThatIsHandedOverIsUnderWay(t *testing.T) {
	r, k := newRoom(), &kept{}
	r.begun = k
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := r.server.NewConn(&conns.Conn{Conn: ours})
	go func() {
		_, _ = io.WriteString(theirs, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	}()
	if n, err := c.Read(make([]byte, 64)); n != len(begun) || err != nil {
		t.Fatalf("net/http is given %d bytes: %v", n, err)
	}
	r.isStopping = true
	c.Close() // as net/http closes what is idle
	r.server.Follow(c, http.StateActive)
	c.Close() // as if it had looked before that
	if c.TakeBegun() != Exchange(k) || k.isAbandoned || c.IsOver() {
		t.Fatal("the request is over, or lost")
	}
	r.server.Follow(c, http.StateClosed)
	if err := ours.SetDeadline(time.Now()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection stays: %v", err)
	}
}

// TestARequestThatIsHandedOverIsAbandonedWithItsConnection, where net/http ends that before its
// handler has it.
func TestARequestThatIsHandedOverIsAbandonedWithItsConnection(t *testing.T) {
	r, k := newRoom(), &kept{}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := r.server.NewConn(&conns.Conn{Conn: ours})
	c.handOver(k)
	c.end(false)
	c.Close()
	r.server.Follow(c, http.StateClosed)
	if err := ours.SetDeadline(time.Now()); !errors.Is(err, io.ErrClosedPipe) || !k.isAbandoned {
		t.Errorf("the connection or its request stays: %v", err)
	}
}

// noticing is a connection whose sender is seen to leave when an answer is about to be written.
type noticing struct {
	*net.TCPConn
	leaves func()
}

func (c *noticing) Write(p []byte) (int, error) {
	c.leaves()
	return c.TCPConn.Write(p)
}

// TestWhoLeavesWhileItsAnswerIsWrittenHasNone: over TCP the sender's end comes before the answer is
// written, and the reset with which its kernel takes that behind it. Whenever its leaving is seen, who has
// read all of the answer has it, and nobody else.
func TestWhoLeavesWhileItsAnswerIsWrittenHasNone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	for name, leaves := range map[string]struct{ isSeen, hasAnswer bool }{
		"before": {}, "as it is written": {isSeen: true}, "behind it": {hasAnswer: true},
	} {
		theirs, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		r, ours := newRoom(), &noticing{accepted.(*net.TCPConn), func() {}}
		c := r.server.NewConn(conns.NewConn(ours))
		r.server.Counted.Once(7, func(counted func()) { counted() })
		ends := func(is string) {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("it leaves %s, %s: read %d bytes, %v", name, is, n, err)
			}
		}
		if !leaves.hasAnswer {
			theirs.Close()
			eventually.True(t, "its end is here", c.HasLeft)
		}
		if leaves.isSeen {
			ours.leaves = func() { ends("and that is seen") }
		}
		if _, err := c.Write(answer); err != nil {
			t.Fatal(err)
		}
		if leaves.hasAnswer {
			if _, err := io.ReadFull(theirs, make([]byte, len(answer))); err != nil {
				t.Fatal(err)
			}
			theirs.Close()
		}
		c.Receipt.Await(7)
		c.Receipt.Idle()
		ends("and nothing more comes")
		c.Close()
		if known := r.server.Counted.Once(7, func(func()) {}); known == leaves.hasAnswer {
			t.Errorf("it leaves %s: what it sends again is known: %t", name, known)
		}
	}
}

const plainRequest = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"

// TestAHeadBehindAPlainRequestHasItsTime, which is that of any head, and not that in which another
// request may begin.
func TestAHeadBehindAPlainRequestHasItsTime(t *testing.T) {
	r := newRoom()
	r.server.Header, r.server.Between = 20*time.Millisecond, time.Hour
	c, theirs := r.admitted(t)
	go func() {
		_, _ = io.WriteString(theirs, plainRequest)
		_, _ = http.ReadResponse(bufio.NewReader(theirs), nil)
		_, _ = io.WriteString(theirs, "PUT / HT")
	}()
	timeout := time.AfterFunc(time.Minute, func() { theirs.Close() })
	defer timeout.Stop()
	if n, err := c.Read(make([]byte, 64)); n != len("PUT / HT") || err != nil || r.answered != 1 {
		t.Fatalf("net/http is given %d bytes behind %d requests: %v", n, r.answered, err)
	}
	if _, err := c.Read(make([]byte, 64)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the rest of it is waited for: %v", err)
	}
}

// TestNoConnectionChangesToHTTP2 behind a plain request, however its preface comes. At its beginning
// one may.
func TestNoConnectionChangesToHTTP2(t *testing.T) {
	for _, before := range []string{"", plainRequest} {
		for _, size := range []int{1, 5, len(Preface)} {
			r := newRoom()
			r.server.HTTP2 = true
			c, theirs := r.admitted(t)
			go func() {
				_, _ = io.WriteString(theirs, before)
				if before != "" {
					_, _ = http.ReadResponse(bufio.NewReader(theirs), nil)
				}
				for piece := range slices.Chunk([]byte(Preface), size) {
					if _, err := theirs.Write(piece); err != nil {
						return
					}
				}
			}()
			got, err := 0, error(nil)
			for n := 0; err == nil && got < len(Preface); got += n {
				n, err = c.Read(make([]byte, 64))
			}
			isFirst := before == ""
			if c.HTTP2.Load() != isFirst || isFirst != (err == nil) || isFirst != (got == len(Preface)) {
				t.Errorf("behind %q, in pieces of %d: %d bytes are given, HTTP/2 %t, %v", before, size, got,
					c.HTTP2.Load(), err)
			}
			theirs.Close()
		}
	}
}
