package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"time"
)

// impatientConn is the connection of a sender that abandons requests after milliseconds. It does not
// use net/http, which can cancel a request after it has read the response: then even the kernel does
// not know that the response was not processed.
type impatientConn struct {
	address string
	conn    net.Conn // nil if not connected
	reader  *bufio.Reader
}

// do sends a request and reads the complete response. It closes the connection if that takes longer
// than timeout.
func (c *impatientConn) do(r *http.Request, timeout time.Duration) (*http.Response, error) {
	if c.conn == nil {
		conn, err := net.Dial(networkOf(c.address), c.address)
		if err != nil {
			return nil, err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(timeout)) // if it fails, the next call fails as well
	response, err := c.exchange(r)
	if err != nil || response.Close {
		c.disconnect()
	}
	return response, err
}

func (c *impatientConn) exchange(r *http.Request) (*http.Response, error) {
	if err := r.Write(c.conn); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

// disconnect closes the connection if there is one.
func (c *impatientConn) disconnect() {
	if c.conn != nil {
		_ = c.conn.Close() // no longer used for reading
		c.conn = nil
	}
}
