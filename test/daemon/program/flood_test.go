//go:build !race

package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// flood fills all receivers of a daemon to their limits. All keys are distinct, and all bodies have the
// maximum length.
type flood struct {
	t         *testing.T
	socket    string            // socket of the native protocol
	receivers map[string]string // Unix sockets of the receivers, by the prefix of their flags
	limits    status.Status     // status with the limits, at the start
	number    atomic.Uint64     // number of the last key

	mu    sync.Mutex
	zeros []byte
}

// limit returns the value of a flag.
func (f *flood) limit(flag string) int {
	at := slices.IndexFunc(f.limits.Config, func(s status.Setting) bool { return s.Name == flag })
	n, err := memory.ParseSize(f.limits.Config[at].Value)
	if err != nil {
		f.t.Error(err)
	}
	return n
}

// next returns a text that is in no other key.
func (f *flood) next() string { return fmt.Sprintf("key %d of a flood", f.number.Add(1)) }

// spans publishes spans over the native protocol, each connection as a service of its own.
func (f *flood) spans(spansPerConnection int) {
	f.atOnce(f.limit("max-connections")/2, func(int) { // a process may have half of them
		service := f.next()
		c, err := client.Open(client.Config{
			Socket: f.socket, Origin: client.Origin{Service: service}, MaxKept: client.KeepNothing,
		})
		if err != nil {
			f.t.Error(err)
			return
		}
		batch, long := make([]client.Snapshot, 50), strings.Repeat("x", 2000)
		for range spansPerConnection / len(batch) {
			for i := range batch {
				key := client.Key{Resource: f.next() + long, Operation: "op", Service: service}
				for tag := range 8 {
					key.PeerTags = append(key.PeerTags, fmt.Sprintf("tag%d:%s", tag, f.next()))
				}
				batch[i] = client.Snapshot{
					Key: key, Duration: time.Millisecond << (i % 12), End: time.Now(), TopLevel: true,
				}
			}
			c.Publish(batch) // the client drops snapshots that exceed its buffer
		}
		for range 2 {
			leave, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			_ = c.Flush(leave) // and disconnects before the response
			cancel()
		}
		over, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(over)
	})
}

// transport speaks HTTP/1.1, or HTTP/2 without TLS, through a Unix socket.
func transport(socket string, isHTTP2 bool) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!isHTTP2)
	protocols.SetUnencryptedHTTP2(isHTTP2)
	return &http.Transport{
		Protocols: protocols, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
}

// message is the body of a request, and where it is sent.
type message struct {
	path, media string
	body        []byte
}

const (
	pathOTLP   = "/v1/traces"
	pathGRPC   = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	pathTraces = "/v0.4/traces"
	pathStats  = "/v0.6/stats"
	pathZipkin = "/api/v2/spans"
)

// floodConnections is how many connections of a receiver send at once: more than it counts bodies of.
const floodConnections = 6

// sendAll sends messages to a receiver over one connection, in turns without compression, in gzip and in zstd.
func (f *flood) sendAll(receiver string, messages []message, connection int) {
	isHTTP2 := receiver == "otlp" && connection%2 == 1
	over := transport(f.receivers[receiver], isHTTP2)
	defer over.CloseIdleConnections()
	for i, m := range messages {
		if isHTTP2 && len(m.body) < 10*f.limit("otlp-max-body") {
			m.path, m.media = pathGRPC, "application/grpc"
			m.body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m.body))), m.body...)
		}
		encoding := [...]string{"", "gzip", "zstd"}[(i+connection)%3]
		if receiver == "apm" || isHTTP2 || receiver == "zipkin" && encoding == "zstd" {
			encoding = ""
		}
		f.post(over, m, encoding)
	}
}

// atOnce runs senders and waits for them.
func (f *flood) atOnce(senders int, send func(sender int)) {
	var sending sync.WaitGroup
	for sender := range senders {
		sending.Go(func() { send(sender) })
	}
	sending.Wait()
}

const (
	mediaProtobuf = "application/x-protobuf"
	mediaMsgpack  = "application/msgpack"
	mediaJSON     = "application/json"
)

// tooLong is how many times as long as it may be a body is that compresses to almost nothing.
const tooLong = 100

// bomb returns a part of one text that compresses to almost nothing.
func (f *flood) bomb(length int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if length > len(f.zeros) {
		f.zeros = make([]byte, length)
	}
	return f.zeros[:length:length]
}

// post sends a message. A receiver that has no room may refuse it.
func (f *flood) post(over *http.Transport, m message, encoding string) {
	var body bytes.Buffer
	switch encoding {
	case "gzip":
		w := gzip.NewWriter(&body)
		_, _ = w.Write(m.body)
		_ = w.Close()
	case "zstd":
		w, err := zstd.NewWriter(&body, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(m.body)
		_ = w.Close()
	default:
		body.Write(m.body)
	}
	patience, cancel := context.WithTimeout(context.Background(), time.Second) // destinations don't respond
	defer cancel()
	request, err := http.NewRequestWithContext(patience, http.MethodPost, "http://daemon"+m.path, &body)
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", m.media)
	request.Header.Set("Datadog-Meta-Lang", "go")
	if encoding != "" {
		request.Header.Set("Content-Encoding", encoding)
	}
	response, err := over.RoundTrip(request)
	if err != nil {
		return // no response, or another sender got the connection
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
}

// otlp returns requests with spans whose names and attributes are distinct, and bodies of what takes the most
// memory per byte. No two are equal, which would be a retry.
func (f *flood) otlp() (messages []message) {
	length := f.limit("otlp-max-body") - 1000
	add := func(body []byte) {
		distinct := otlptest.Resource{
			Attributes: []otlptest.Attribute{{"service.name", f.next()}, {"service.instance.id", f.next()}},
			Scopes:     [][]otlptest.Span{{f.span()}},
		}
		messages = append(messages, message{pathOTLP, mediaProtobuf, append(body, otlptest.Request(distinct)...)})
	}
	for _, body := range otlptest.CostlyBodies(length) {
		add(body)
	}
	var spans []otlptest.Span
	for range length / 1000 {
		spans = append(spans, f.span())
	}
	body := otlptest.Request(otlptest.Resource{
		Attributes: []otlptest.Attribute{{"service.name", f.next()}}, Scopes: [][]otlptest.Span{spans},
	})
	add(body[:len(body):len(body)])
	return append(messages, message{pathOTLP, mediaProtobuf, f.bomb(tooLong * length)})
}

func (f *flood) span() otlptest.Span {
	now := uint64(time.Now().UnixNano())
	number := f.number.Add(1)
	s := otlptest.Span{
		Name: f.next(), Kind: 3, Start: now - 1e6<<(number%12), End: now, Trace: number, ID: number,
		Code: int(number % 3),
	}
	for _, name := range []string{"peer.service", "db.system.name", "http.route", "rpc.method"} {
		s.Attributes = append(s.Attributes, otlptest.Attribute{name, f.next()})
	}
	return s
}

// datadog returns traces and client-computed statistics in Datadog formats.
func (f *flood) datadog() (messages []message) {
	length := f.limit("apm-max-body") - 1000
	empty := append(binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(length/2)), bytes.Repeat([]byte{0x91, 0x80},
		length/2)...)
	messages = append(messages, message{pathTraces, mediaMsgpack, empty})
	var traces, groups []any
	sketch := latencySketch()
	for range length / 1200 {
		meta := map[string]string{"span.kind": "client"}
		for _, tag := range []string{"peer.service", "db.name", "http.endpoint"} {
			meta[tag] = f.next()
		}
		traces = append(traces, []any{map[string]any{
			"service": f.next(), "name": "op", "resource": f.next(), "trace_id": f.number.Add(1), "span_id": 1,
			"start": time.Now().UnixNano(), "duration": 1_000_000, "meta": meta,
			"metrics": map[string]float64{"_sampling_priority_v1": 1, "_top_level": 1},
		}})
		groups = append(groups, map[string]any{
			"Service": f.next(), "Name": "op", "Resource": f.next(), "Hits": 1, "TopLevelHits": 1, "Duration": 1_000_000,
			"OkSummary": sketch, "ErrorSummary": sketch, "SpanKind": "client", "PeerTags": []string{f.next()},
		})
	}
	stats := func(host string, groups []any) any {
		return map[string]any{
			"Hostname": host, "Env": f.next(), "Service": f.next(), "RuntimeID": f.next(),
			"Stats": []any{map[string]any{
				"Start": time.Now().Truncate(10 * time.Second).UnixNano(), "Duration": int64(10 * time.Second), "Stats": groups,
			}},
		}
	}
	for path, value := range map[string]any{pathTraces: traces, pathStats: stats(f.next(), groups)} {
		body, err := msgpack.Marshal(value)
		if err != nil {
			panic(err)
		}
		messages = append(messages, message{path, mediaMsgpack, body})
	}
	long, err := msgpack.Marshal(stats(strings.Repeat("h", length-length/4), groups[:1]))
	if err != nil {
		panic(err)
	}
	return append(messages, message{pathStats, mediaMsgpack, long})
}

// latencySketch returns the encoding of a sketch as Datadog's tracers send it.
func latencySketch() []byte {
	index, err := mapping.NewLogarithmicMapping(.01)
	if err != nil {
		panic(err)
	}
	sketch := ddsketch.NewDDSketch(index, store.NewDenseStore(), store.NewDenseStore())
	if err := sketch.Add(1e6); err != nil {
		panic(err)
	}
	encoded, err := proto.Marshal(sketch.ToProto())
	if err != nil {
		panic(err)
	}
	return encoded
}

// zipkin returns spans in JSON.
func (f *flood) zipkin() []message {
	length := f.limit("zipkin-max-body") - 1000
	span := func() string {
		number := f.number.Add(1)
		return fmt.Sprintf(`{"traceId":"%016x","id":"%016x","kind":"CLIENT","name":"%s","timestamp":%d,"duration":%d,`+
			`"localEndpoint":{"serviceName":"%s"},"remoteEndpoint":{"serviceName":"%s"},"tags":{"http.route":"%s"}}`,
			number+1, number+1, f.next(), time.Now().UnixMicro(), 1000<<(number%12), f.next(), f.next(), f.next())
	}
	list := func(spans []string) message {
		return message{pathZipkin, mediaJSON, []byte("[" + strings.Join(spans, ",") + "]")}
	}
	var distinct []string
	for range length / 400 {
		distinct = append(distinct, span())
	}
	return []message{
		list(distinct),
		list(append(slices.Repeat([]string{"{}"}, length/4), span())),
		{pathZipkin, mediaJSON, f.bomb(tooLong * length)},
	}
}

// hold occupies all connections of all receivers, each within a request with a header of the maximum
// length, over HTTP/2 within several, and with scrapes whose responses are not read.
func (f *flood) hold(httpAddr string) (release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var holding sync.WaitGroup
	dial := func(network, address string, request []byte) {
		c, err := net.Dial(network, address)
		if err != nil {
			f.t.Error(err)
			return
		}
		context.AfterFunc(ctx, func() { c.Close() })
		holding.Go(func() { _, _ = c.Write(request) }) // the daemon reads as much as it has room for
	}
	header := http.Header{"Content-Type": {mediaProtobuf}}
	for i := range 90 {
		header.Set(fmt.Sprintf("X-Header-%d", i), strings.Repeat("x", 100))
	}
	for receiver := range f.receivers {
		path := map[string]string{"apm": pathTraces, "zipkin": pathZipkin, "otlp": pathOTLP}[receiver]
		length := f.limit(receiver + "-max-body")
		request, err := http.NewRequest(http.MethodPost, "http://daemon"+path, bytes.NewReader(make([]byte, length)))
		if err != nil {
			panic(err)
		}
		request.Header = header
		var partial bytes.Buffer
		_ = request.Write(&partial)
		partial.Truncate(partial.Len() - length/2)
		for connection := range f.limit(receiver + "-max-connections") {
			if receiver != "otlp" || connection%2 == 0 {
				dial("unix", f.receivers[receiver], partial.Bytes())
				continue
			}
			over := transport(f.receivers[receiver], true)
			for range 4 {
				body, rest := io.Pipe()
				stream, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon"+pathGRPC, body)
				if err != nil {
					panic(err)
				}
				stream.Header = header.Clone()
				stream.Header.Set("Content-Type", "application/grpc")
				holding.Go(func() { _, _ = rest.Write(append([]byte{0, 0, 0, 0xff, 0xff}, make([]byte, 1<<14)...)) })
				holding.Go(func() {
					defer body.Close()
					if response, err := over.RoundTrip(stream); err == nil {
						response.Body.Close()
					}
				})
			}
		}
	}
	for connection := range f.limit("max-connections") {
		length := wire.MinMaxFrame / 2
		if connection%2 == 0 { // the buffers of large frames hold few
			length = wire.DefaultMaxFrame - wire.HeaderLen
		}
		half := binary.BigEndian.AppendUint32(wire.AppendHello(nil, &wire.Hello{Version: wire.Version}), uint32(length))
		dial("unix", f.socket, append(half, make([]byte, length/2)...))
	}
	for range 8 {
		dial("tcp", httpAddr, []byte("GET /metrics/spans HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
	}
	return func() {
		cancel()
		holding.Wait()
	}
}
