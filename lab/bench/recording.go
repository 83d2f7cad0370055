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

// Traces is the workload of requests that real tracers have sent to the agent.
const Traces = "traces"

// Recorded are the formats of which there is a recording.
var Recorded = []string{"v0.4", "v0.5", "v1.0"}

// recorded are requests as they were on the wire: make record-traces. They were
// packed just after they were sent.
//
//go:embed testdata/*.http.gz
var recorded embed.FS

// recording is one of them, and what is in it.
type recording struct {
	name    string
	format  decode.Format
	path    string
	header  http.Header
	body    []byte
	starts  []int // where the spans' starts stand in the body, eight bytes each
	latest  int64 // of them
	spans   int
	counted int // of the spans, those that the agent would count
}

// The headers that matter to counting.
const (
	headerLang          = "Datadog-Meta-Lang"
	headerComputedStats = "Datadog-Client-Computed-Stats"
	headerComputedTop   = "Datadog-Client-Computed-Top-Level"
)

var formats = map[string]decode.Format{
	"v0.4": decode.FormatV04, "v0.5": decode.FormatV05,
	"v1.0": decode.FormatV1,
}

// loadRecording reads a recording, and counts it once.
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

// find finds the starts of the spans: in a body nothing else of eight bytes is a
// time of the minute before it was packed.
func (r *recording) find(packed time.Time) {
	first, last := packed.Add(-time.Minute).UnixNano(), packed.Add(time.Second).UnixNano()
	const signed, unsigned = 0xd3, 0xcf // how msgpack says that eight bytes follow
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

// stamp moves a copy of the body in time, so that the last of its spans began then.
func (r *recording) stamp(body []byte, latest time.Time) {
	later := uint64(latest.UnixNano() - r.latest)
	for _, at := range r.starts {
		binary.BigEndian.PutUint64(body[at:], binary.BigEndian.Uint64(r.body[at:])+later)
	}
}

// message is the request without its body, from a tracer that computes its statistics
// itself, so that nobody counts its spans, or from one that does not.
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

// Request is a recorded request of a tracer that leaves counting to others, with its last
// span begun at that time, and how many spans are in it.
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

// count counts the body as the daemon does.
func (r *recording) count(c *dd.Counter, policy *dd.Policy) error {
	return c.Count(r.format, r.body, r.header.Get(headerLang), r.header.Get(headerComputedTop) != "", policy)
}

// defaultPolicy is that of an agent that nobody has configured, which the
// stand-in is: 44 peer tags.
func defaultPolicy() *dd.Policy {
	info := standin.DefaultInfo()
	policy, ok := dd.NewPolicy(info.PeerTags, info.SpanKinds, nil, dd.Labels{})
	if !ok {
		panic("BUG: the daemon leaves the default agent's policy to it")
	}
	return policy
}
