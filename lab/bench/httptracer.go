package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// httpTracer repeatedly sends a recorded request over one connection and waits for each
// response, as tracers do. It connects with the first request, because the daemon closes a
// connection without a request after five seconds, and other tracers can take longer to start.
type httpTracer struct {
	result
	transport *http.Transport
	recording *recording
	request   *http.Request
	body      []byte // body of the recording, with current times
}

// spanAge is the age of a request's last span when the request is sent.
const spanAge = 10 * time.Millisecond

func newHTTPTracer(j *job) (*httpTracer, error) {
	r, err := loadRecording(j.Format)
	if err != nil {
		return nil, err
	}
	t := &httpTracer{
		result: newResult(), recording: r, request: r.message(j.ComputesStats),
		body: bytes.Clone(r.body),
	}
	t.transport = &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", j.Socket)
		},
	}
	return t, nil
}

// publish sends a request and waits for the response. Both are timed.
func (t *httpTracer) publish(now time.Time) error {
	t.recording.stamp(t.body, now.Add(-spanAge))
	t.request.Body = io.NopCloser(bytes.NewReader(t.body))
	t.Attempted += uint64(t.recording.spans)
	started := time.Now()
	answer, err := t.transport.RoundTrip(t.request)
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return fmt.Errorf("read answer to traces: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("send traces: the answer was %s", answer.Status)
	}
	t.Publish.add(time.Since(started))
	t.Handed += uint64(t.recording.spans)
	return nil
}

// flush does nothing: requests are sent immediately.
func (t *httpTracer) flush() error { return nil }

func (t *httpTracer) close() error {
	t.transport.CloseIdleConnections()
	return nil
}
