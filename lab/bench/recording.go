package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// Traces is the workload of recorded requests that real tracers sent to the agent.
const Traces = "traces"

// Recorded lists the formats of the recordings.
var Recorded = []string{"v0.4", "v0.5", "v1.0"}

// recorded contains the requests as on the wire, created by "make record-traces". They were
// packed immediately after they were sent.
//
//go:embed testdata/*.http.gz
var recorded embed.FS

// recording is a recorded request.
type recording struct {
	name    string
	format  decode.Format
	path    string
	header  http.Header
	body    []byte
	starts  []int // offsets of the spans' start times in the body, eight bytes each
	latest  int64 // latest of the start times
	spans   int
	counted int // number of spans that the agent would count
}

// Headers that affect counting.
const (
	headerLang          = "Datadog-Meta-Lang"
	headerComputedStats = "Datadog-Client-Computed-Stats"
	headerComputedTop   = "Datadog-Client-Computed-Top-Level"
)

var formats = map[string]decode.Format{
	"v0.4": decode.FormatV04, "v0.5": decode.FormatV05,
	"v1.0": decode.FormatV1,
}

// loadRecording loads a recording and counts its spans.
func loadRecording(format string) (*recording, error) {
	r := &recording{name: format, format: formats[format]}
	if err := r.read("testdata/" + format + ".http.gz"); err != nil {
		return nil, fmt.Errorf("read recording of %s: %w", format, err)
	}
	c := dd.NewCounter()
	if err := r.count(c, defaultPolicy()); err != nil {
		return nil, fmt.Errorf("count recording of %s: %w", format, err)
	}
	for _, batch := range c.Batches {
		r.counted += len(batch.Snapshots)
	}
	return r, nil
}

func (r *recording) read(file string) error {
	packed, err := recorded.Open(file)
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
	if r.body, err = io.ReadAll(request.Body); err != nil {
		return err
	}
	r.path, r.header = request.URL.Path, request.Header
	r.find(unpacked.ModTime)
	return nil
}

// find locates the start times of the spans: eight-byte integers whose value is in the minute
// before the recording was packed. No other bytes match.
func (r *recording) find(packed time.Time) {
	first, last := packed.Add(-time.Minute).UnixNano(), packed.Add(time.Second).UnixNano()
	const signed, unsigned = 0xd3, 0xcf // msgpack type bytes of 64-bit integers
	for at := 1; at+8 <= len(r.body); at++ {
		if lead := r.body[at-1]; lead != signed && lead != unsigned {
			continue
		}
		if start := int64(binary.BigEndian.Uint64(r.body[at:])); start >= first && start <= last {
			r.starts, r.latest = append(r.starts, at), max(r.latest, start)
		}
	}
	r.spans = len(r.starts)
}

// stamp adjusts the start times in a copy of the body so that its last span began at latest.
func (r *recording) stamp(body []byte, latest time.Time) {
	later := uint64(latest.UnixNano() - r.latest)
	for _, at := range r.starts {
		binary.BigEndian.PutUint64(body[at:], binary.BigEndian.Uint64(r.body[at:])+later)
	}
}

// message returns the request without its body. computesStats marks it as sent by a tracer that
// computes statistics itself, so that its spans are not counted again.
func (r *recording) message(computesStats bool) *http.Request {
	header := r.header.Clone()
	header.Del(headerComputedStats)
	if computesStats {
		header.Set(headerComputedStats, "yes")
	}
	return &http.Request{
		Method: http.MethodPost, URL: &url.URL{
			Scheme: "http", Host: "localhost",
			Path: r.path,
		}, Header: header, ContentLength: int64(len(r.body)),
	}
}

// Request returns a recorded request of a tracer that does not compute statistics, and its
// number of spans. Its last span begins at latest.
func Request(format string, latest time.Time) (*http.Request, int, error) {
	r, err := loadRecording(format)
	if err != nil {
		return nil, 0, err
	}
	r.stamp(r.body, latest)
	request := r.message(false)
	request.Body = io.NopCloser(bytes.NewReader(r.body))
	return request, r.spans, nil
}

// count counts the spans of the body as the daemon does.
func (r *recording) count(c *dd.Counter, policy *dd.Policy) error {
	return c.Count(r.format, r.body, r.header.Get(headerLang), r.header.Get(headerComputedTop) != "", policy)
}

// defaultPolicy returns the policy of an agent with default configuration, such as the mock
// agent: 44 peer tags.
func defaultPolicy() *dd.Policy {
	info := standin.DefaultInfo()
	policy, ok := dd.NewPolicy(info.PeerTags, info.SpanKinds, nil, dd.Labels{})
	if !ok {
		panic("BUG: the daemon leaves the default agent's policy to it")
	}
	return policy
}
