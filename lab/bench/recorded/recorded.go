// Package recorded is requests with traces as SDKs of OpenTelemetry have sent them, for what
// measures how they are counted and handed on: `make record-otlp` makes them, see
// test/otel/record. They stand in a package of their own so that no daemon carries them.
//
// A request is read once and never changes; who sends it with other times has a copy of its
// message. So any goroutine may use it.
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

// Names are those of all requests: the language of the SDK, and what is special. java-all and
// java-gzip have all attributes that the Java agent can be told to write, node-16 has small
// batches.
var Names = []string{"go", "java", "java-all", "java-gzip", "python", "node", "node-16", "node-json"}

//go:embed testdata/*.http.gz
var files embed.FS

// Request is one of them, and what is in it.
type Request struct {
	Name    string
	Path    string // of gRPC the method
	Header  http.Header
	Body    []byte // as it is on the wire
	Message []byte // of it the ExportTraceServiceRequest, in protobuf or JSON, without gzip
	Spans   int
	times   []int // where times of spans stand in the message, eight bytes each
	latest  int64 // of them
}

// Load reads a request.
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

// prefixLen is what gRPC has before a message.
const prefixLen = 5

// IsGRPC says whether the SDK spoke gRPC, IsJSON whether its message is JSON.
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

// count finds out how many spans there are.
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

// find finds the times of spans: nothing else behind the tags of those fields is a time of
// the minutes before the request was packed. In JSON there are none to be found.
func (r *Request) find(packed time.Time) {
	const start, end = 7<<3 | 1, 8<<3 | 1 // fixed64
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

// Stamp moves a copy of the message in time, so that the last of its spans ended then.
func (r *Request) Stamp(message []byte, latest time.Time) {
	later := uint64(latest.UnixNano() - r.latest)
	for _, at := range r.times {
		binary.LittleEndian.PutUint64(message[at:], binary.LittleEndian.Uint64(r.Message[at:])+later)
	}
}
