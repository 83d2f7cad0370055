package apm

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
)

// forward hands on a request whose body is held, and gives back the agent's answer, both on
// the request's goroutine. A refusal, or an answer that breaks off, is as good as none: its
// tracer may try again.
func (j *job) forward(w http.ResponseWriter, r *http.Request) {
	s, isAnswered := j.server, false
	defer func() {
		j.body.release()
		if j.sum != 0 {
			s.awaitReceipt(r, j.sum, isAnswered && j.accepted)
		}
	}()
	j.header = r.Header
	s.identify(r, j.header)
	c, err := j.send(r)
	if err != nil {
		s.unanswered(w, r, err)
	}
	defer s.agents.giveBack(c)
	answer, err := c.receive(r, func(early *http.Response) { showEarly(w, early) })
	j.body.release() // the agent has it, or wants no more of it
	if err != nil {
		s.unanswered(w, r, err)
	}
	s.noteAgentState(answer.Header)
	j.accepted = answer.StatusCode/100 == 2
	if err := c.handBack(w, answer); err != nil {
		panic(http.ErrAbortHandler) // a part of the answer may be written
	}
	isAnswered = true
}

// send writes the request on a connection to the agent, which ends when the tracer leaves.
// Where the agent has ended a kept one before anything was written, another is taken. An
// error says that there was none; what else fails shows when the answer is read.
func (j *job) send(r *http.Request) (*agentConn, error) {
	s := j.server
	for {
		c, err := s.agents.connect(r.Context())
		if err != nil {
			return nil, err
		}
		c.unwatch = context.AfterFunc(r.Context(), func() { c.Close() })
		j.decide()
		j.writeHead(&c.head, r, s.config.Agent.host())
		if c.send(c.head.Bytes(), j.body.send) {
			return c, nil
		}
		s.agents.giveBack(c)
	}
}

// notForwarded are the fields of a request that end here, because they are about the
// connection, or that are written anew.
var notForwarded = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
	"Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
	"Host": true, "Content-Length": true,
}

// writeHead writes the request up to its body.
func (j *job) writeHead(head *bytes.Buffer, r *http.Request, host string) {
	head.Reset()
	for _, text := range [...]string{
		r.Method, " ", r.URL.RequestURI(), " HTTP/1.1\r\nHost: ", host, "\r\nContent-Length: ", strconv.Itoa(len(j.body.send)), "\r\n",
	} {
		head.WriteString(text)
	}
	_ = j.header.WriteSubset(head, notForwarded) // into memory
	head.WriteString("\r\n")
}
