package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// forwarder hands calls on to the destination, on connections that are kept.
type forwarder struct {
	to        Destination
	transport *http.Transport
	upstreams *upstreams // nil where plain requests can't go on
	waits     http1.Waiting
	log       *door.RequestLog
	timeout   time.Duration
	outcomes  [outcomes]atomic.Uint64
}

const (
	// maxForwards bounds the connections to a destination that speaks HTTP/1.1; more requests wait
	// for one of them to be free.
	maxForwards = 64
	dialTimeout = 5 * time.Second
	// idleTime is shorter than that after which most servers close a connection, perhaps under
	// a request.
	idleTime = 30 * time.Second
	// maxAnswer and maxAnswerHeader are many times what anybody answers.
	maxAnswer       = 64 << 10
	maxAnswerHeader = 64 << 10
)

func newForwarder(c *Config, log *door.RequestLog, stopping <-chan struct{}) *forwarder {
	f := &forwarder{to: c.Forward, log: log, timeout: c.forwardTimeout, waits: http1.Waiting{MaxWait: c.Buffer, Stopping: stopping}}
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!f.to.isGRPC)
	speaks.SetHTTP2(f.to.isTLS)
	speaks.SetUnencryptedHTTP2(f.to.isGRPC && !f.to.isTLS)
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, f.to.Network, f.to.Address)
	}
	f.upstreams = newUpstreams(&f.to, dial)
	f.transport = &http.Transport{
		Protocols:              speaks,
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return f.waits.Dial(ctx, dial) },
		TLSClientConfig:        &tls.Config{RootCAs: f.to.authorities, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		DisableCompression:     true, // what an SDK does not ask for it must not get
		MaxConnsPerHost:        maxForwards - maxUpstreams,
		MaxIdleConnsPerHost:    maxForwards,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxAnswerHeader,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: silence, WriteByteTimeout: writeTimeout},
	}
	return f
}

// outcome is what became of a request that was to go on.
type outcome uint8

const (
	outcomeTaken   outcome = iota
	outcomeRefused         // by the destination, for good
	outcomeLater           // the destination says try again
	outcomeAway            // it did not answer
	outcomeLeft            // its SDK has left meanwhile
	outcomeUnfit           // it can't be said in the destination's words

	outcomes = int(outcomeUnfit) + 1
)

var outcomeNames = [outcomes]string{"taken", "refused", "later", "away", "left", "unfit"}

// send hands a call on, and returns what its sender is told.
func (f *forwarder) send(r *http.Request, c *call) *reply {
	answer, outcome := f.try(r, c)
	f.end(c, answer, outcome)
	return answer
}

// end notes what became of a call.
func (f *forwarder) end(c *call, answer *reply, o outcome) {
	f.outcomes[o].Add(1)
	c.resolve(o == outcomeTaken && answer.takesAll(c.encoding))
}

func (f *forwarder) try(r *http.Request, c *call) (*reply, outcome) {
	p, ok := f.parcel(c)
	if !ok {
		no := refuse(codeUnimplemented, c.signal.String()+" in JSON can't go on to a destination that speaks gRPC; have the SDK send protobuf")
		no.http = http.StatusUnsupportedMediaType
		return no, outcomeUnfit
	}
	ctx, cancel := context.WithTimeout(r.Context(), f.timeout)
	defer cancel()
	answer, err := f.exchange(ctx, r.Header, c, p)
	return f.judge(c, answer, err, r.Context().Err() != nil)
}

// judge is what became of a call, and what its sender is told.
func (f *forwarder) judge(c *call, answer *reply, err error, hasLeft bool) (*reply, outcome) {
	switch {
	case err == nil && answer.code == codeOK:
		return answer, outcomeTaken
	case err == nil && answer.isFinal():
		f.log.Write(slog.LevelWarn, "the destination of OTLP refused a request; its sender drops it", "signal", c.signal.String(), "answer", answer.said)
		return answer, outcomeRefused
	case err == nil:
		return answer, outcomeLater
	case hasLeft:
		return later("the request was given up"), outcomeLeft // nobody reads it
	}
	f.log.Write(slog.LevelWarn, "the destination of OTLP did not answer; its senders are told to try again", "error", advised(err))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(codeDeadlineExceeded, "the destination did not answer in time"), outcomeAway
	}
	return later("the destination does not answer"), outcomeAway
}

// exchange sends one request and reads its answer. When it returns nobody reads the call's
// bytes any more.
func (f *forwarder) exchange(ctx context.Context, header http.Header, c *call, p parcel) (*reply, error) {
	out := &outgoing{message: p.message}
	defer out.readers.Wait()
	if f.to.isGRPC {
		before := prefix(len(p.message), p.isPacked)
		out.prefix = before[:]
	}
	body, _ := out.newReader()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.to.url(c.signal), body)
	if err != nil {
		body.Close()
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.GetBody, r.ContentLength = out.newReader, int64(len(out.prefix)+len(p.message))
	r.Header = f.head(header, c, p)
	resp, err := f.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	said, err := readBody(resp)
	if err != nil {
		return nil, err
	}
	if f.to.isGRPC {
		return replyOfGRPC(resp, said, c.encoding), nil
	}
	return replyOfHTTP(resp, said, p.encoding, c.encoding), nil
}

// head is the fields of a request to the destination.
func (f *forwarder) head(came http.Header, c *call, p parcel) http.Header {
	h := forwarded(came)
	h.Set("Content-Type", mediaOf[p.encoding])
	if f.to.isGRPC {
		h.Set("Te", "trailers")
		if p.isPacked {
			h.Set(headerGRPCEncoding, "gzip")
		}
	} else if p.isPacked {
		h.Set("Content-Encoding", "gzip")
	}
	if c.sum != 0 {
		h.Set(headerComputedStats, "yes")
	}
	return h
}

// parcel is a call's message as it goes on.
type parcel struct {
	message  []byte
	isPacked bool
	encoding encoding
}

// parcel chooses the bytes that go on: those that came, wherever the destination can read
// them. It reports false where it can read none.
func (f *forwarder) parcel(c *call) (parcel, bool) {
	p := parcel{c.message, c.isPacked, c.encoding}
	if c.kept.body != nil {
		p = parcel{c.kept.body.Bytes, c.kept.isPacked, inProtobuf}
	}
	switch {
	case f.to.isGRPC && c.kept.body != nil:
		p.encoding = inGRPC
	case c.kept.body != nil:
	case f.to.isGRPC && c.encoding == inJSON:
		if c.protobuf == nil || len(c.protobuf.Bytes) == 0 {
			return p, false
		}
		p = parcel{c.protobuf.Bytes, false, inGRPC}
	case f.to.isGRPC:
		p.encoding = inGRPC
	case c.encoding == inGRPC:
		p.encoding = inProtobuf
	}
	return p, true
}
