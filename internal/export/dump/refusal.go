package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Refusal is a payload that the agent refused, with the agent's response.
type Refusal struct {
	Time  time.Time
	Agent string // URL of the agent
	Spans uint64 // number of spans in the payload

	Sent http.Header
	Body []byte

	Status  string // such as "400 Bad Request"
	Answer  http.Header
	Message string // body of the response, truncated
}

// Headers in the file for information that was not part of the request.
const (
	timeHeader  = "Spanstatsd-Time"
	agentHeader = "Spanstatsd-Agent"
	spansHeader = "Spanstatsd-Spans"
)

// target is the request target of every payload.
const target = "/v0.6/stats"

// maxFile is more than the length of a payload of 25 MiB with both headers.
const maxFile = 32 << 20

// encode returns the request and the response as HTTP messages.
func (r *Refusal) encode() []byte {
	var b bytes.Buffer
	sent := r.Sent.Clone()
	if sent == nil {
		sent = http.Header{}
	}
	sent.Set(timeHeader, r.Time.UTC().Format(time.RFC3339Nano))
	sent.Set(agentHeader, r.Agent)
	sent.Set(spansHeader, strconv.FormatUint(r.Spans, 10))
	message(&b, "POST "+target+" HTTP/1.1\r\nHost: localhost\r\n", sent, r.Body)
	message(&b, "HTTP/1.1 "+r.Status+"\r\n", r.Answer, []byte(r.Message))
	return b.Bytes()
}

// message writes one HTTP message. Its Content-Length is that of the body, regardless of header.
func message(b *bytes.Buffer, start string, header http.Header, body []byte) {
	b.WriteString(start)
	_ = header.WriteSubset(b, map[string]bool{
		"Content-Length": true, "Transfer-Encoding": true,
		"Connection": true,
	})
	fmt.Fprintf(b, "Content-Length: %d\r\n\r\n", len(body))
	b.Write(body)
}

// Read parses a file written by Dir.Keep.
func Read(from io.Reader) (*Refusal, error) {
	in := bufio.NewReader(io.LimitReader(from, maxFile))
	if start, _ := in.Peek(len("POST " + target)); string(start) != "POST "+target {
		return nil, fmt.Errorf("read dump: the file does not begin with %q; give a file from --debug-dir",
			"POST "+target)
	}
	request, err := http.ReadRequest(in)
	if err != nil {
		return nil, fmt.Errorf("read dump: the request: %w", err)
	}
	r := &Refusal{Sent: request.Header, Agent: request.Header.Get(agentHeader)}
	if r.Body, err = io.ReadAll(request.Body); err != nil {
		return nil, fmt.Errorf("read dump: the payload: %w", err)
	}
	if err := r.readFacts(); err != nil {
		return nil, fmt.Errorf("read dump: %w", err)
	}
	answer, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, fmt.Errorf("read dump: the response: %w", err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read dump: the response: %w", err)
	}
	r.Status, r.Answer, r.Message = answer.Status, answer.Header, string(said)
	r.Answer.Del("Content-Length")
	return r, nil
}

// readFacts reads the headers that encode has added, and removes them.
func (r *Refusal) readFacts() (err error) {
	if r.Time, err = time.Parse(time.RFC3339Nano, r.Sent.Get(timeHeader)); err != nil {
		return err
	}
	if r.Spans, err = strconv.ParseUint(r.Sent.Get(spansHeader), 10, 64); err != nil {
		return err
	}
	for name := range r.Sent {
		if strings.HasPrefix(name, "Spanstatsd-") || name == "Content-Length" {
			r.Sent.Del(name)
		}
	}
	return nil
}
