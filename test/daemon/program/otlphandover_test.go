package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// spansOf returns an OTLP request with the given number of spans of a service. Each number has a
// different service.
func spansOf(number uint64, count int) []byte {
	nested := func(b []byte, n protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), message)
	}
	named := nested(nested(nil, 1, []byte("service.name")), 2, nested(nil, 1, []byte("shop")))
	var scope []byte
	for i := range count {
		id := binary.BigEndian.AppendUint64(nil, uint64(i+1))
		span := nested(nested(nested(nil, 1, append(binary.BigEndian.AppendUint64(nil, number+1), id...)), 2,
			id), 5, []byte("GET /"))
		for field, at := range map[protowire.Number]time.Time{
			7: time.Now().Add(-time.Millisecond),
			8: time.Now(),
		} {
			span = protowire.AppendFixed64(protowire.AppendTag(span, field, protowire.Fixed64Type),
				uint64(at.UnixNano()))
		}
		scope = nested(scope, 2, span)
	}
	return nested(nil, 1, nested(nested(nil, 1, nested(nil, 1, named)), 2, scope))
}

// exporter sends requests one after another, like an SDK.
type exporter struct {
	network, address string
	isGRPC           bool
	keepsConnection  bool // whether it keeps its connection between requests
	transport        *http.Transport
}

// connect makes the next request use a new connection.
func (e *exporter) connect() {
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!e.isGRPC)
	speaks.SetUnencryptedHTTP2(e.isGRPC)
	e.transport = &http.Transport{
		Protocols: speaks,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, e.network, e.address)
		},
	}
}

// post sends a request and returns an error if it is not accepted.
func (e *exporter) post(ctx context.Context, body []byte) error {
	if !e.keepsConnection {
		e.transport.CloseIdleConnections()
		e.connect()
	}
	path, media := "/v1/traces", "application/x-protobuf"
	if e.isGRPC {
		path, media = "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc"
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://collector"+path,
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", media)
	response, err := e.transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || e.isGRPC && response.Trailer.Get("Grpc-Status") != "0" {
		return fmt.Errorf("response %s, %v", response.Status, response.Trailer)
	}
	return nil
}

// send exports bodies numbered from first on until stop is closed, retrying each until it is accepted.
// If canFail is set, an attempt can fail.
func (e *exporter) send(t *testing.T, first uint64, stop chan struct{}, canFail bool, accepted *atomic.Uint64) {
	e.connect()
	defer func() { e.transport.CloseIdleConnections() }()
	for number := first; ; number++ {
		select {
		case <-stop:
			return
		default:
		}
		body := spansOf(number, 10)
		for err := e.post(t.Context(), body); err != nil; err = e.post(t.Context(), body) {
			if !canFail || t.Context().Err() != nil {
				t.Errorf("an SDK at %s (gRPC %v, keep-alive %v) failed during the restart: %v", e.network,
					e.isGRPC, e.keepsConnection, err)
				return
			}
			time.Sleep(time.Millisecond) // the next daemon is not running yet
		}
		accepted.Add(1)
	}
}

// acceptWhileRestarting runs three daemons one after another and waits until each has accepted 200 more requests.
// It calls ending before the last one shuts down.
func acceptWhileRestarting(t *testing.T, m *manager, start func() *process, accepted *atomic.Uint64, ending func()) {
	t.Helper()
	for restarts := range 3 {
		daemon := start()
		for before := accepted.Load(); accepted.Load() < before+200 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		if restarts == 2 {
			ending()
		}
		m.stop(daemon)
	}
}

// TestSocketActivation_RestartLosesNoOTLP sends OTLP over HTTP and gRPC to a socket and an address
// kept open by a service manager, while three daemons follow one another. Each request must be accepted
// at its first attempt, each span must be counted once, and the accounting of all daemons must balance.
func TestSocketActivation_RestartLosesNoOTLP(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "o")
	m := newManager(t, "run", "--socket", filepath.Join(dir, "s"), "--otlp-socket", socket, "--agent-url",
		agent.URL(), "--http-addr", "127.0.0.1:0", "--log-format", "json")
	addr := m.listen("tcp", "127.0.0.1:0").String()
	m.listen("unix", socket)
	var accepted atomic.Uint64
	stop, sending := make(chan struct{}), sync.WaitGroup{}
	for i, e := range []*exporter{
		{network: "unix", address: socket},
		{network: "tcp", address: addr},
		{network: "unix", address: socket, isGRPC: true},
		{network: "tcp", address: addr, isGRPC: true},
		{network: "tcp", address: addr, isGRPC: true, keepsConnection: true},
	} {
		sending.Go(func() { e.send(t, uint64(i)<<32, stop, false, &accepted) })
	}
	acceptWhileRestarting(t, m, func() *process { return m.start("--otlp-addr", addr) }, &accepted, func() {
		close(stop)
		sending.Wait()
	})
	if got := agent.Totals(); got.Hits != 10*accepted.Load() {
		t.Errorf("%d requests with 10 spans each, and the agent has %d hits", accepted.Load(), got.Hits)
	}
}

// TestRestart_CountsEachSpanOnce restarts a daemon without a service manager, so its socket is
// closed. Accepted requests must be counted, and the SDK must retry all others with the next daemon.
func TestRestart_CountsEachSpanOnce(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "o")
	var accepted atomic.Uint64
	stop, sending := make(chan struct{}), sync.WaitGroup{}
	for i := range uint64(4) {
		e := &exporter{network: "unix", address: socket, isGRPC: i%2 == 0, keepsConnection: i < 2}
		sending.Go(func() { e.send(t, i<<32, stop, true, &accepted) })
	}
	start := func() *process {
		return daemonProcess(t, agent.URL(), filepath.Join(dir, "s"), "--otlp-socket", socket)
	}
	acceptWhileRestarting(t, newManager(t), start, &accepted, func() {
		close(stop)
		sending.Wait()
	})
	if got := agent.Totals(); got.Hits != 10*accepted.Load() {
		t.Errorf("%d requests with 10 spans each were accepted, and the agent has %d hits", accepted.Load(),
			got.Hits)
	}
}
