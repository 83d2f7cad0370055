package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// upstreams are connections to a destination that speaks HTTP/1.1 without TLS, for plain
// requests.
type upstreams struct {
	http1.Upstreams
	host  string
	paths [signals]string
	free  chan struct{} // one for each connection that there may be
}

const (
	// maxUpstreams are as many of maxForwards; the others are net/http's.
	maxUpstreams = maxForwards / 2
	// quickDial is how long a plain request waits for a connection. What takes longer is
	// waited for by net/http.
	quickDial = 100 * time.Millisecond
	// attendEvery is how often a request whose answer takes its time is looked after.
	attendEvery = 200 * time.Millisecond
)

// newUpstreams are those to a destination, nil where it speaks something else.
func newUpstreams(to *Destination, dial func(context.Context) (net.Conn, error)) *upstreams {
	if to.isGRPC || to.isTLS {
		return nil
	}
	u := &upstreams{Upstreams: http1.Upstreams{Dial: dial}, free: make(chan struct{}, maxUpstreams)}
	for s := range signals {
		at, err := url.Parse(to.url(signal(s)))
		if err != nil {
			return nil // net/http says so at each request
		}
		u.host, u.paths[s] = at.Host, at.RequestURI()
	}
	return u
}

// take returns a connection, nil where there is none at hand.
func (u *upstreams) take() *http1.Upstream {
	select {
	case u.free <- struct{}{}:
	default:
		return nil
	}
	if kept := u.TakeUsable(); kept != nil {
		return kept
	}
	ctx, cancel := context.WithTimeout(context.Background(), quickDial)
	defer cancel()
	conn, err := u.Dial(ctx)
	if err != nil {
		<-u.free
		return nil
	}
	return http1.NewUpstream(conn)
}

// giveBack takes it back.
func (u *upstreams) giveBack(to *http1.Upstream) {
	u.GiveBack(to)
	<-u.free
}

// sendPlain hands a call on as send does, where there is a connection at hand, and returns nil
// where there is none.
func (f *forwarder) sendPlain(from *http1.Conn, came http1.Fields, c *call) *reply {
	p, _ := f.parcel(c) // whatever it is goes on by HTTP
	to := f.begin(came, c, p)
	if to == nil {
		return nil
	}
	defer f.upstreams.giveBack(to)
	var answer *reply
	resp, said, err := f.await(from, to)
	if err == nil {
		answer = replyOfHTTP(resp, said, p.encoding, c.encoding)
	}
	answer, outcome := f.judge(c, answer, err, errors.Is(err, errLeft))
	f.end(c, answer, outcome)
	return answer
}

// begin begins to send a call on a connection, of which those that have ended meanwhile are
// passed over.
func (f *forwarder) begin(came http1.Fields, c *call, p parcel) *http1.Upstream {
	for to := f.upstreams.take(); to != nil; to = f.upstreams.take() {
		f.writeHead(&to.Head, came, c, p)
		if to.Start(to.Head.Bytes(), p.message) {
			return to
		}
		f.upstreams.giveBack(to)
	}
	return nil
}

// writeHead writes a request up to its body.
func (f *forwarder) writeHead(head *bytes.Buffer, came http1.Fields, c *call, p parcel) {
	head.Reset()
	for _, text := range [...]string{
		"POST ", f.upstreams.paths[c.signal], " HTTP/1.1\r\nHost: ", f.upstreams.host, "\r\nContent-Length: ", strconv.Itoa(len(p.message)),
		"\r\nContent-Type: ", mediaOf[p.encoding], "\r\n",
	} {
		head.WriteString(text)
	}
	if p.isPacked {
		head.WriteString("Content-Encoding: gzip\r\n")
	}
	if c.sum != 0 {
		came.Set(headerComputedStats, "yes")
	}
	came.Write(head, isForwarded)
	head.WriteString("\r\n")
}

// await reads the answer to a request that is being sent, with its body.
func (f *forwarder) await(from *http1.Conn, to *http1.Upstream) (resp *http.Response, said []byte, err error) {
	if to.AnswersAtOnce() {
		_ = to.SetReadDeadline(time.Now().Add(f.timeout)) // none where it can't be set
		return readAnswer(to)
	}
	ended := attend(from, to, f.timeout)
	to.Finish()
	resp, said, err = readAnswer(to)
	if why := ended(); why != nil {
		err = why
	}
	return resp, said, err
}

// readAnswer reads an answer to its end.
func readAnswer(to *http1.Upstream) (resp *http.Response, said []byte, err error) {
	if resp, err = to.Receive(nil, func(*http.Response) {}); err != nil {
		return nil, nil, fmt.Errorf("forward: %w", err)
	}
	said, err = readBody(resp)
	to.IsRead = err == nil && !resp.Close
	return resp, said, err
}

// readBody reads the body of an answer, which is bounded.
func readBody(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case len(said) > maxAnswer:
		return nil, fmt.Errorf("read answer: it has more than %d bytes", maxAnswer)
	}
	return said, nil
}

var errLeft = errors.New("forward: the SDK has left")

// attend ends a connection to the destination when the SDK leaves, or the time of its request is
// over. What it returns ends that, and says why the connection was ended, if it was.
func attend(from *http1.Conn, to *http1.Upstream, timeout time.Duration) (ended func() error) {
	over := make(chan struct{})
	var why error
	var attending sync.WaitGroup
	attending.Go(func() {
		late, looking := time.NewTimer(timeout), time.NewTicker(attendEvery)
		defer late.Stop()
		defer looking.Stop()
		for why == nil {
			select {
			case <-over:
				return
			case <-late.C:
				why = context.DeadlineExceeded
			case <-looking.C:
				if from.HasLeft() {
					why = errLeft
				}
			}
		}
		_ = to.Close() // which ends reading and writing
	})
	return func() error {
		close(over)
		attending.Wait()
		return why
	}
}
