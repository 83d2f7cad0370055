package http1

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// Writer is what a handler writes an answer by that states its length. It is written at the
// flush, in one piece.
type Writer struct {
	conn   *Conn
	header http.Header
	text   bytes.Buffer
}

// NewWriter writes to the sender of the request that is being answered. An answer that is the
// last says so.
func (c *Conn) NewWriter() *Writer {
	w := &Writer{conn: c, header: http.Header{}}
	if c.isLast() {
		w.header.Set("Connection", "close")
	}
	return w
}

// Header is the fields of the answer.
func (w *Writer) Header() http.Header { return w.header }

// WriteHeader writes them.
func (w *Writer) WriteHeader(status int) {
	w.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	w.text.WriteString("HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) + endOfLine)
	_ = w.header.Write(&w.text) // to memory, which takes everything
	w.text.WriteString(endOfLine)
}

// Write writes a piece of the body.
func (w *Writer) Write(p []byte) (int, error) { return w.text.Write(p) }

// SetWriteDeadline is for http.ResponseController. The flush sets its own.
func (*Writer) SetWriteDeadline(time.Time) error { return nil }

// FlushError sends the answer.
func (w *Writer) FlushError() error { return w.conn.WriteWhole(w.text.Bytes()) }
