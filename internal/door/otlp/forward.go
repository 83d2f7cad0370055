package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// behind is the destination as the door hands requests to it.
func (c *Config) behind() door.Behind {
	to := &c.Forward
	b := door.Behind{
		Network: to.Network, Address: to.Address, Most: maxForwards, Patience: c.forwardTimeout,
	}
	b.Base = to.scheme() + b.Host()
	if to.isGRPC || to.isTLS {
		b.Transport = func(dial door.Dial) http.RoundTripper { return to.transport(dial, c.forwardTimeout) }
	}
	return b
}

// transport carries requests by gRPC or TLS.
func (d *Destination) transport(dial door.Dial, patience time.Duration) http.RoundTripper {
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!d.isGRPC)
	speaks.SetHTTP2(d.isTLS)
	speaks.SetUnencryptedHTTP2(d.isGRPC && !d.isTLS)
	return &http.Transport{
		Protocols:              speaks,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: d.authorities, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    patience,
		DisableCompression:     true, // what an SDK does not ask for it must not get
		MaxConnsPerHost:        maxForwards,
		MaxIdleConnsPerHost:    maxForwards,
		IdleConnTimeout:        http1.KeptFor,
		MaxResponseHeaderBytes: http1.MaxAnswerHeader,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: silence, WriteByteTimeout: writeTimeout},
	}
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

// parcel is a call's message as it goes on.
type parcel struct {
	message  []byte
	isPacked bool
	encoding encoding
}

// wrap chooses the bytes that go on: those that came, wherever the destination can read them. It
// reports false where it can read none.
func (c *call) wrap() bool {
	isGRPC := c.server.config.Forward.isGRPC
	c.parcel = parcel{c.message, c.isPacked, c.encoding}
	switch {
	case c.kept.body != nil:
		c.parcel = parcel{c.kept.body.Bytes, c.kept.isPacked, inProtobuf}
	case isGRPC && c.encoding == inJSON:
		c.parcel = parcel{c.protobuf, false, inProtobuf}
		if len(c.protobuf) == 0 {
			return false
		}
	case c.encoding == inGRPC:
		c.parcel.encoding = inProtobuf
	}
	if isGRPC {
		c.parcel.encoding = inGRPC
	}
	return true
}

// unfit is the reply to a call that the destination can't read.
func (c *call) unfit() *door.Reply {
	c.server.outcomes[outcomeUnfit].Add(1)
	no := refuse(codeUnimplemented, c.signal.String()+" in JSON can't go on to a destination that speaks "+
		"gRPC; have the SDK send protobuf")
	no.http = http.StatusUnsupportedMediaType
	return c.say(no)
}

// Begin says what goes on: the message, with what the destination's protocol has around it.
func (c *call) Begin() door.Parcel {
	to, p := &c.server.config.Forward, &c.parcel
	out := door.Parcel{Method: http.MethodPost, Target: to.target(c.signal), Message: p.message}
	named := c.Fields.Get("Connection")
	c.Fields.Keep(func(name string) bool { return isForwarded(name) && !isNamed(named, name) })
	c.Fields.Set("Content-Type", mediaOf[p.encoding])
	switch {
	case to.isGRPC:
		before := prefix(len(p.message), p.isPacked)
		out.Prefix = before[:]
		c.Fields.Set("Te", "trailers")
		if p.isPacked {
			c.Fields.Set(headerGRPCEncoding, "gzip")
		}
	case p.isPacked:
		c.Fields.Set("Content-Encoding", "gzip")
	}
	if c.IsCounted() {
		c.Fields.Set(headerComputedStats, "yes")
	}
	out.Fields = c.Fields
	return out
}

// isForwarded says whether a field of a request goes on: none that is about the connection, or
// about how the body is written, which is said anew.
func isForwarded(name string) bool {
	switch name {
	case "Content-Type", "Content-Encoding", "Accept-Encoding":
		return false
	}
	return http1.IsForwarded(name) && !strings.HasPrefix(name, "Grpc-")
}

// isNamed says whether a field is one that Connection names.
func isNamed(named, field string) bool {
	for name := range strings.SplitSeq(named, ",") {
		if strings.EqualFold(strings.TrimSpace(name), field) {
			return true
		}
	}
	return false
}

// Answer makes a reply of what the destination has answered, in the words of who asked.
func (c *call) Answer(from *door.Answer) *door.Reply {
	said, err := from.ReadAll(maxAnswer)
	if err != nil {
		return c.Unanswered(err)
	}
	var a *reply
	if c.parcel.encoding == inGRPC {
		a = replyOfGRPC(from, said, c.encoding)
	} else {
		a = replyOfHTTP(from, said, c.parcel.encoding, c.encoding)
	}
	outcome := outcomeLater
	switch {
	case a.code == codeOK:
		outcome = outcomeTaken
	case a.isFinal():
		outcome = outcomeRefused
		c.server.Log.Write(slog.LevelWarn, "the destination of OTLP refused a request; its sender drops it",
			"signal", c.signal.String(), "answer", a.said)
	}
	c.server.outcomes[outcome].Add(1)
	told := c.say(a)
	told.IsTaken = outcome == outcomeTaken && a.takesAll(c.encoding)
	return told
}

// Unanswered has the SDK try again.
func (c *call) Unanswered(err error) *door.Reply {
	s := c.server
	if c.HasLeft() {
		s.outcomes[outcomeLeft].Add(1)
		return c.say(later("the request was given up")) // nobody reads it
	}
	s.outcomes[outcomeAway].Add(1)
	s.Log.Write(slog.LevelWarn, "the destination of OTLP did not answer; its senders are told to try again",
		"error", advised(err))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return c.say(refuse(codeDeadlineExceeded, "the destination did not answer in time"))
	}
	return c.say(later("the destination does not answer"))
}

// say has a call answered.
func (c *call) say(a *reply) *door.Reply {
	return &door.Reply{IsFinal: a.isFinal(), Write: func(w http.ResponseWriter) error {
		if c.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
		}
		return a.write(w, c.encoding, c.signal)
	}}
}
