package datadog

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// forward hands on a request whose body is held, and gives back the agent's answer, both on
// the request's goroutine. A refusal, or an answer that breaks off, is as good as none: its
// tracer may try again.
func (j *job) forward(w http.ResponseWriter, r *http.Request) {
	s, isAnswered := j.server, false
	defer func() { j.end(isAnswered) }()
	for j.agent == nil {
		c, err := s.agents.Connect(r.Context())
		if err != nil {
			s.unanswered(w, r, err)
		}
		j.start(c)
	}
	c := j.agent
	defer s.agents.GiveBack(c)
	c.Unwatch = context.AfterFunc(r.Context(), func() { c.Close() })
	c.Finish()
	answer, err := c.Receive(r, func(early *http.Response) { showEarly(w, early) })
	j.body.Release() // the agent has it, or wants no more of it
	if err != nil {
		s.unanswered(w, r, err)
	}
	s.noteAgentState(answer.Header.Get)
	j.judge(answer.StatusCode)
	if err := handBack(c, w, answer); err != nil {
		panic(http.ErrAbortHandler) // a part of the answer may be written
	}
	isAnswered = true
}

// forwardAtOnce does the same as long as nothing takes its time: there is a connection to
// the agent, which takes the request at once and answers plainly. It reports whether the
// request is over; else forward goes on with it.
func (j *job) forwardAtOnce() bool {
	s := j.server
	c := s.agents.TakeUsable()
	if c == nil || !j.start(c) || !c.IsSent {
		return false
	}
	answer, status := c.ReceiveAtOnce()
	if answer == nil {
		return false
	}
	j.body.Release()
	s.noteAgentState(c.Answer.Fields.Get)
	j.judge(status)
	err := j.conn.WriteWhole(answer)
	_, _ = c.From.Discard(len(answer)) // it is buffered
	c.IsRead = true
	s.agents.GiveBack(c)
	j.end(err == nil)
	s.counters.requests[j.result].Add(1)
	return true
}

// start counts the request and begins to send it on a connection, which is its own from
// then on. It reports false where the agent has ended that before anything was written.
func (j *job) start(c *http1.Upstream) bool {
	j.decide()
	j.writeHead(&c.Head)
	if !c.Start(c.Head.Bytes(), j.body.Send) {
		j.server.agents.GiveBack(c)
		return false
	}
	j.agent = c
	return true
}

// end ends a request, of which the tracer has been written an answer or not.
func (j *job) end(isAnswered bool) {
	j.body.Release()
	j.resolve()
	if j.sum != 0 {
		j.server.awaitReceipt(j.conn, j.sum, isAnswered && j.accepted)
	}
}

// Abandon ends a request that was begun and that nobody goes on with.
func (j *job) Abandon() {
	if j.agent != nil {
		j.agent.Close()
	}
	j.end(false)
	j.server.counters.requests[j.result].Add(1)
}

// writeHead writes the request up to its body.
func (j *job) writeHead(head *bytes.Buffer) {
	identifyIn(j.conn, &j.header)
	head.Reset()
	for _, text := range [...]string{
		j.target, " HTTP/1.1\r\nHost: ", j.server.config.Agent.host(), "\r\nContent-Length: ", strconv.Itoa(len(j.body.Send)), "\r\n",
	} {
		head.WriteString(text)
	}
	j.header.Write(head, http1.IsForwarded)
	head.WriteString("\r\n")
}
