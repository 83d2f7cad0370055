// Package recorded contains trace requests as sent by OpenTelemetry SDKs. Measurements of
// counting and forwarding use them. `make record-otlp` records them; see test/otel/record. They
// are a separate package so that the daemon does not contain them.
//
// A request is immutable after loading, and safe for concurrent use. To send it with other
// times, copy its message.
package recorded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Names lists all requests by the SDK's language and by special properties. java-all and
// java-gzip have all attributes that the Java agent can write; node-16 has small batches.
var Names = []string{"go", "java", "java-all", "java-gzip", "python", "node", "node-16", "node-json"}

//go:embed testdata/*.http.gz
var files embed.FS

// Request is a recorded request.
type Request struct {
	Name    string
	Path    string // path, or the method for gRPC
	Header  http.Header
	Body    []byte // body as on the wire
	Message []byte // ExportTraceServiceRequest from Body, in protobuf or JSON, decompressed
	Spans   int
	times   []int // offsets of the spans' times in Message, eight bytes each
	latest  int64 // latest of the times
}

// Load loads a request by name.
func Load(name string) (*Request, error) {
	r := &Request{Name: name}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("read recorded request %q: %w", name, err)
	}
	return r, nil
}

func (r *Request) read() error {
	packed, err := files.Open("testdata/" + r.Name + ".http.gz")
	if err != nil {
		return err
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	request, err := http.ReadRequest(bufio.NewReader(unpacked))
	if err != nil {
		return err
	}
	if r.Body, err = io.ReadAll(request.Body); err != nil {
		return err
	}
	r.Path, r.Header, r.Message = request.URL.Path, request.Header, r.Body
	if r.IsGRPC() {
		r.Message = r.Body[prefixLen:]
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		if r.Message, err = inflated(r.Body); err != nil {
			return err
		}
	}
	r.find(unpacked.ModTime)
	return r.count()
}

// prefixLen is the length of gRPC's prefix of a message.
const prefixLen = 5

// IsGRPC reports whether the SDK used gRPC. IsJSON reports whether its message is JSON.
func (r *Request) IsGRPC() bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

func (r *Request) IsJSON() bool { return r.Header.Get("Content-Type") == "application/json" }

func inflated(packed []byte) ([]byte, error) {
	from, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(from)
}

// count sets the number of spans.
func (r *Request) count() (err error) {
	message := r.Message
	if r.IsJSON() {
		if message, err = otlpjson.FromJSON(nil, message); err != nil {
			return err
		}
	}
	var decoded otlp.Request
	noAttributes := spantable.NewNames([]string{""})
	if err := decoded.Decode(message, noAttributes, noAttributes); err != nil {
		return err
	}
	r.Spans = len(decoded.Spans)
	return nil
}

// find locates the times of spans: eight bytes after the tag of a time field, whose value is in
// the minutes before the recording was packed. No other bytes match. It finds none in JSON.
func (r *Request) find(packed time.Time) {
	const start, end = 7<<3 | 1, 8<<3 | 1 // tags of fixed64 fields
	first, last := packed.Add(-2*time.Minute).UnixNano(), packed.Add(time.Second).UnixNano()
	for at := 1; at+8 <= len(r.Message); at++ {
		if tag := r.Message[at-1]; tag != start && tag != end {
			continue
		}
		if t := int64(binary.LittleEndian.Uint64(r.Message[at:])); t >= first && t <= last {
			r.times, r.latest = append(r.times, at), max(r.latest, t)
		}
	}
}

// Stamp adjusts the times in a copy of the message so that its last span ended at latest.
func (r *Request) Stamp(message []byte, latest time.Time) {
	later := uint64(latest.UnixNano() - r.latest)
	for _, at := range r.times {
		binary.LittleEndian.PutUint64(message[at:], binary.LittleEndian.Uint64(r.Message[at:])+later)
	}
}
