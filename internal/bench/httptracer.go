package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// httpTracer sends a recorded request again and again over one connection, as
// tracers do: the next one when the last was answered. It connects when it has
// something to send, for the daemon waits five seconds for a first request, and
// another tracer may take longer to start.
type httpTracer struct {
	result
	socket    string
	conn      *net.UnixConn // nil until then
	answers   *bufio.Reader
	recording *recording
	message   []byte
	body      []byte // the part of it that is stamped
}

// spanAge is how old the last span of a request is when that is sent.
const spanAge = 10 * time.Millisecond

func newHTTPTracer(j *job) (*httpTracer, error) {
	r, err := loadRecording(j.Format)
	if err != nil {
		return nil, err
	}
	t := &httpTracer{socket: j.Socket, recording: r, result: newResult()}
	var at int
	t.message, at = r.message(j.ComputesStats)
	t.body = t.message[at:]
	return t, nil
}

func (t *httpTracer) connect() (err error) {
	if t.conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: t.socket}); err != nil {
		return fmt.Errorf("connect tracer: %w", err)
	}
	t.answers = bufio.NewReader(t.conn)
	return nil
}

// publish sends a request and waits for its answer, and both are timed.
func (t *httpTracer) publish(now time.Time) error {
	if t.conn == nil {
		if err := t.connect(); err != nil {
			return err
		}
	}
	t.recording.stamp(t.body, now.Add(-spanAge))
	t.Attempted += uint64(t.recording.spans)
	begun := time.Now()
	if _, err := t.conn.Write(t.message); err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	answer, err := http.ReadResponse(t.answers, nil)
	if err != nil {
		return fmt.Errorf("read answer to traces: %w", err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return fmt.Errorf("read answer to traces: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("send traces: the answer was %s", answer.Status)
	}
	t.Publish.add(time.Since(begun))
	t.Handed += uint64(t.recording.spans)
	return nil
}

// flush has nothing to do: a request is sent at once.
func (t *httpTracer) flush() error { return nil }

func (t *httpTracer) close() error {
	if t.conn == nil {
		return nil
	}
	return t.conn.Close()
}
