package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// hurried is the connection of a sender that abandons requests after milliseconds. It does not use
// net/http, which can cancel a request after it has read the response: then even the kernel does not
// know that the response was not processed.
type hurried struct {
	address string
	conn    net.Conn // nil if not connected
	from    *bufio.Reader
}

// do sends a request and reads the complete response. It closes the connection if that takes longer
// than patience.
func (h *hurried) do(r *http.Request, patience time.Duration) (*http.Response, error) {
	if h.conn == nil {
		conn, err := net.Dial(networkOf(h.address), h.address)
		if err != nil {
			return nil, err
		}
		h.conn, h.from = conn, bufio.NewReader(conn)
	}
	_ = h.conn.SetDeadline(time.Now().Add(patience)) // if it fails, the next call fails as well
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

// hangUp closes the connection if there is one.
func (h *hurried) hangUp() {
	if h.conn != nil {
		_ = h.conn.Close() // no longer used for reading
		h.conn = nil
	}
}
