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
	door string
	life int
	conn net.Conn // connection to the daemon of that life; nil before the daemon listens
	from *bufio.Reader
	sent []request
}

// startSenders starts a sender for each receiver. The senders run until ctx is done.
func (e *episode) startSenders(ctx context.Context) {
	for i, door := range e.doors {
		random := rand.New(rand.NewPCG(e.seed, 100+uint64(i)))
		e.sending.Go(func() {
			s := &sender{door: door}
			for number := 0; ctx.Err() == nil; number++ {
				r := request{slot: slot{door, fmt.Sprint("GET /r/", number)}, spans: 1 + random.Uint64N(40)}
				if s.connect(e.daemon) {
					r.life = s.life
					r.isAnswered = s.send(&r)
					s.sent = append(s.sent, r)
				}
				pause(ctx, time.Duration(random.IntN(40))*time.Millisecond)
			}
			s.hangUp()
			e.mu.Lock()
			defer e.mu.Unlock()
			e.requests[door] = s.sent
		})
	}
}

// connect connects to the daemon if there is no connection. It reports whether there is one.
func (s *sender) connect(d *daemon) bool {
	life, page := d.page()
	if life != s.life {
		s.hangUp()
	}
	if s.conn != nil || page == "" {
		return s.conn != nil
	}
	s.life = life
	return s.dial(d.door(s.door, life))
}

func (s *sender) dial(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false // the daemon has been killed
	}
	s.conn, s.from = conn, bufio.NewReader(conn)
	return true
}

func (s *sender) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// send sends a request on a new connection. It reports whether a daemon accepted the connection.
func (r *request) send(door, socket string) (isSent bool) {
	s := &sender{door: door}
	if isSent = s.dial(socket); isSent {
		r.isAnswered = s.send(r)
		s.hangUp()
	}
	return isSent
}

// send sends a request and reports whether it was acknowledged.
func (s *sender) send(r *request) (isAnswered bool) {
	path, media, body := "/v1/traces", "application/x-protobuf", []byte(nil)
	switch s.door {
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
		if !isAnswered {
			s.hangUp()
		}
	}()
	_ = s.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if err := request.Write(s.conn); err != nil {
		return false
	}
	answer, err := http.ReadResponse(s.from, request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode/100 == 2
}
