package http1

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// Writer writes an answer to a plain request, as http.ResponseWriter does. All of it is written
// by FlushError, in one piece that states its length.
type Writer struct {
	conn   *Conn
	header http.Header
	status int
	body   bytes.Buffer
	isSent bool
}

// NewWriter writes to the sender of the request that is being answered.
func (c *Conn) NewWriter() *Writer {
	return &Writer{conn: c, header: http.Header{}, status: http.StatusOK}
}

// Header is the fields of the answer.
func (w *Writer) Header() http.Header { return w.header }

// WriteHeader says what its status is.
func (w *Writer) WriteHeader(status int) { w.status = status }

// Write appends to the body.
func (w *Writer) Write(p []byte) (int, error) { return w.body.Write(p) }

// FlushError writes the answer, unless it is written. One that is the last says so, and ends the
// connection, for its sender reads no other.
func (w *Writer) FlushError() error {
	if w.isSent {
		return nil
	}
	if w.conn.isLast() {
		w.header.Set("Connection", "close")
		w.conn.EndBehind()
	}
	w.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	w.header.Set("Content-Length", strconv.Itoa(w.body.Len()))
	var all bytes.Buffer
	all.Grow(MaxHead/8 + w.body.Len())
	all.WriteString("HTTP/1.1 " + strconv.Itoa(w.status) + " " + http.StatusText(w.status) + endOfLine)
	_ = w.header.Write(&all) // to memory, which takes everything
	all.WriteString(endOfLine)
	all.Write(w.body.Bytes())
	return w.WriteWhole(all.Bytes())
}

// WriteWhole writes an answer that has its head, in the place of what was said before.
func (w *Writer) WriteWhole(answer []byte) error {
	w.isSent = true
	return w.conn.writeWhole(answer)
}
