package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Refusal is a payload that the agent refused, with the agent's response.
type Refusal struct {
	Time  time.Time
	Agent string // URL of the agent
	Spans uint64 // number of spans in the payload

	RequestHeader http.Header
	RequestBody   []byte // the payload

	Status         string // such as "400 Bad Request"
	ResponseHeader http.Header
	ResponseBody   string // truncated
}

// Headers in the file for information that was not part of the request.
const (
	timeHeader  = "Spanstatsd-Time"
	agentHeader = "Spanstatsd-Agent"
	spansHeader = "Spanstatsd-Spans"
)

// requestPath is the path of the requests that send payloads.
const requestPath = "/v0.6/stats"

// maxFile is more than the length of a payload of 25 MiB with both headers.
const maxFile = 32 << 20

// encode returns the content of a dump file: the request and the response as HTTP/1.1 messages. The
// time, the URL of the agent and the number of spans are additional headers of the request.
func (r *Refusal) encode() []byte {
	var b bytes.Buffer
	header := r.RequestHeader.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(timeHeader, r.Time.UTC().Format(time.RFC3339Nano))
	header.Set(agentHeader, r.Agent)
	header.Set(spansHeader, strconv.FormatUint(r.Spans, 10))
	writeMessage(&b, "POST "+requestPath+" HTTP/1.1\r\nHost: localhost\r\n", header, r.RequestBody)
	writeMessage(&b, "HTTP/1.1 "+r.Status+"\r\n", r.ResponseHeader, []byte(r.ResponseBody))
	return b.Bytes()
}

// writeMessage writes one HTTP message, which begins with the given lines. It replaces the headers
// that describe how the body is sent by a Content-Length.
func writeMessage(b *bytes.Buffer, firstLines string, header http.Header, body []byte) {
	b.WriteString(firstLines)
	omitted := map[string]bool{"Content-Length": true, "Transfer-Encoding": true, "Connection": true}
	_ = header.WriteSubset(b, omitted)
	fmt.Fprintf(b, "Content-Length: %d\r\n\r\n", len(body))
	b.Write(body)
}

// Read parses a file that Dir.Keep has written.
func Read(from io.Reader) (*Refusal, error) {
	const firstBytes = "POST " + requestPath
	in := bufio.NewReader(io.LimitReader(from, maxFile))
	start, _ := in.Peek(len(firstBytes))
	if string(start) != firstBytes {
		return nil, fmt.Errorf("read dump: the file does not begin with %q; use a file from --debug-dir",
			firstBytes)
	}
	request, err := http.ReadRequest(in)
	if err != nil {
		return nil, fmt.Errorf("read request in dump: %w", err)
	}
	r := &Refusal{}
	if err := r.readRequest(request); err != nil {
		return nil, fmt.Errorf("read dump: %w", err)
	}
	response, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, fmt.Errorf("read response in dump: %w", err)
	}
	defer response.Body.Close()
	if err := r.readResponse(response); err != nil {
		return nil, fmt.Errorf("read response in dump: %w", err)
	}
	return r, nil
}

// readRequest sets the fields of r that are from the request in the file.
func (r *Refusal) readRequest(request *http.Request) (err error) {
	r.RequestHeader = request.Header
	r.RequestBody, err = io.ReadAll(request.Body)
	if err != nil {
		return fmt.Errorf("the payload: %w", err)
	}
	r.RequestHeader.Del("Content-Length")
	return r.moveAddedHeaders()
}

// readResponse sets the fields of r that are from the response in the file.
func (r *Refusal) readResponse(response *http.Response) error {
	message, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	r.Status = response.Status
	r.ResponseHeader = response.Header
	r.ResponseHeader.Del("Content-Length")
	r.ResponseBody = string(message)
	return nil
}

// moveAddedHeaders sets r.Time, r.Agent and r.Spans from the headers that encode adds to a request, and removes
// these headers from r.RequestHeader. It returns an error if the time or the number of spans is invalid.
func (r *Refusal) moveAddedHeaders() (err error) {
	r.Agent = r.RequestHeader.Get(agentHeader)
	r.Time, err = time.Parse(time.RFC3339Nano, r.RequestHeader.Get(timeHeader))
	if err != nil {
		return err
	}
	r.Spans, err = strconv.ParseUint(r.RequestHeader.Get(spansHeader), 10, 64)
	if err != nil {
		return err
	}
	for _, name := range [...]string{timeHeader, agentHeader, spansHeader} {
		r.RequestHeader.Del(name)
	}
	return nil
}
