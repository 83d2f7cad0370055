package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// hurried is a connection of a sender that gives requests up within milliseconds. It is not
// net/http's, which may have read an answer and give its request up all the same: then not even
// the kernel knows that nobody has it.
type hurried struct {
	address string
	conn    net.Conn // nil where there is none
	from    *bufio.Reader
}

// do sends a request and reads the whole answer. Whatever is missing when the time is over, the
// connection ends.
func (h *hurried) do(r *http.Request, patience time.Duration) (*http.Response, error) {
	if h.conn == nil {
		conn, err := net.Dial(networkOf(h.address), h.address)
		if err != nil {
			return nil, err
		}
		h.conn, h.from = conn, bufio.NewReader(conn)
	}
	_ = h.conn.SetDeadline(time.Now().Add(patience)) // what follows fails where it can't be set
	answer, err := h.exchange(r)
	if err != nil || answer.Close {
		h.hangUp()
	}
	return answer, err
}

func (h *hurried) exchange(r *http.Request) (*http.Response, error) {
	if err := r.Write(h.conn); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(h.from, r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, err
}

// hangUp closes the connection, if there is one.
func (h *hurried) hangUp() {
	if h.conn != nil {
		_ = h.conn.Close() // nobody reads it any more
		h.conn = nil
	}
}
