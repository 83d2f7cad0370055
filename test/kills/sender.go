package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// slotHeader is the request header with the slot and span count of a request, read by the fake agent.
const slotHeader = "X-Kills"

// sender sends requests to an HTTP receiver, one at a time. It never retries: an unacknowledged request
// may or may not have been counted, and both are correct.
type sender struct {
	receiver string
	life     int
	conn     net.Conn // connection to the daemon of that life; nil before the daemon listens
	reader   *bufio.Reader
	sent     []request
}

// startSenders starts a sender for each receiver. The senders run until ctx is done.
func (e *episode) startSenders(ctx context.Context) {
	for i, receiver := range e.receivers {
		random := rand.New(rand.NewPCG(e.seed, 100+uint64(i)))
		e.sending.Go(func() {
			s := &sender{receiver: receiver}
			for number := 0; ctx.Err() == nil; number++ {
				r := request{slot: slot{receiver, fmt.Sprint("GET /r/", number)}, spans: 1 + random.Uint64N(40)}
				if s.connect(e.daemon) {
					r.life = s.life
					r.isAcknowledged = s.send(&r)
					s.sent = append(s.sent, r)
				}
				pause(ctx, time.Duration(random.IntN(40))*time.Millisecond)
			}
			s.disconnect()
			e.mu.Lock()
			defer e.mu.Unlock()
			e.requests[receiver] = s.sent
		})
	}
}

// connect connects to the daemon if there is no connection. It reports whether there is one.
func (s *sender) connect(d *daemon) bool {
	life, address := d.statusAddress()
	if life != s.life {
		s.disconnect()
	}
	if s.conn != nil || address == "" {
		return s.conn != nil
	}
	s.life = life
	return s.dial(d.receiverSocket(s.receiver, life))
}

func (s *sender) dial(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false // the daemon has been killed
	}
	s.conn, s.reader = conn, bufio.NewReader(conn)
	return true
}

func (s *sender) disconnect() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// send sends a request on a new connection. It reports whether a daemon accepted the connection.
func (r *request) send(receiver, socket string) (isSent bool) {
	s := &sender{receiver: receiver}
	if isSent = s.dial(socket); isSent {
		r.isAcknowledged = s.send(r)
		s.disconnect()
	}
	return isSent
}

// send sends a request and reports whether it was acknowledged.
func (s *sender) send(r *request) (isAcknowledged bool) {
	path, media, body := "/v1/traces", "application/x-protobuf", []byte(nil)
	switch s.receiver {
	case "apm":
		path, media, body = "/v0.4/traces", "application/msgpack", r.v04()
	case "zipkin":
		path, media, body = "/api/v2/spans", "application/json", r.zipkin()
	default:
		body = r.protobuf()
	}
	request, err := http.NewRequest(http.MethodPost, "http://daemon"+path, bytes.NewReader(body))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	request.Header.Set("Content-Type", media)
	request.Header.Set("X-Datadog-Trace-Count", fmt.Sprint(r.spans))
	request.Header.Set("Datadog-Meta-Lang", "go")
	request.Header.Set(slotHeader, fmt.Sprintf("%d %s %s", r.spans, r.service, r.name))
	defer func() {
		if !isAcknowledged {
			s.disconnect()
		}
	}()
	_ = s.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if err := request.Write(s.conn); err != nil {
		return false
	}
	response, err := http.ReadResponse(s.reader, request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode/100 == 2
}
