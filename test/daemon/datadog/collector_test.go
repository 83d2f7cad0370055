package datadog

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// metricsCollector receives OTLP metrics. For each series it keeps the trace and span of its exemplar
// and its calls.
type metricsCollector struct {
	*httptest.Server
	t testing.TB

	mu    sync.Mutex
	found map[string]string // by status and resource
	calls int64
}

func startCollector(t testing.TB) *metricsCollector {
	c := &metricsCollector{t: t, found: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, metric := range message(body).all(1).all(2).all(2) { // resource metrics, scope metrics, metrics
			for _, point := range (messages{metric}).all(7).all(1) {
				calls, _ := protowire.ConsumeFixed64(point[6][0])
				c.calls += int64(calls)
			}
			for _, point := range (messages{metric}).all(10).all(1) {
				c.exemplars(point)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// exemplars records the exemplars of a point. Each of them must be counted by a bucket of the point.
func (c *metricsCollector) exemplars(point fields) {
	series := ""
	for _, attribute := range (messages{point}).all(1) {
		if key := string(attribute[1][0]); key == "dd.span.Resource" || key == "status.code" {
			series += string(message(attribute[2][0])[1][0]) + " "
		}
	}
	for _, exemplar := range (messages{point}).all(11) {
		bits, _ := protowire.ConsumeFixed64(exemplar[3][0])
		if seconds := math.Float64frombits(bits); !isCounted(point, seconds) {
			c.t.Errorf("%s has an exemplar of %v s, but no bucket counts it", series, seconds)
		}
		c.found[series] = fmt.Sprintf("%x %x", exemplar[5][0], exemplar[4][0])
	}
}

// isCounted reports whether the point's exponential histogram has a non-empty bucket for the given
// duration.
func isCounted(point fields, seconds float64) bool {
	if zeros, ok := point.number(7); ok && zeros > 0 && seconds == 0 {
		return true
	}
	scale, _ := point.number(6)
	buckets := message(point[8][0])
	offset, _ := buckets.number(1)
	bound := func(i int64) float64 {
		return math.Exp2(math.Ldexp(float64(protowire.DecodeZigZag(offset)+i),
			-int(protowire.DecodeZigZag(scale))))
	}
	const rounded = 1e-9 // relative error at a bucket bound
	counts := buckets[2][0]
	for i := int64(0); len(counts) > 0; i++ {
		spans, n := protowire.ConsumeVarint(counts)
		if counts = counts[n:]; spans > 0 && seconds > bound(i)*(1-rounded) &&
			seconds <= bound(i+1)*(1+rounded) {
			return true
		}
	}
	return false
}

// fields are the fields of a message by number: bytes, or an encoded number.
type fields map[protowire.Number][][]byte

type messages []fields

func message(body []byte) fields {
	of := fields{}
	for len(body) > 0 {
		number, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			panic("not a message")
		}
		body = body[n:]
		if n = protowire.ConsumeFieldValue(number, kind, body); n < 0 {
			panic("not a message")
		}
		value := body[:n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		of[number], body = append(of[number], value), body[n:]
	}
	return of
}

func (f fields) all(number protowire.Number) messages { return messages{f}.all(number) }

// all returns the messages in a field of all messages of m.
func (m messages) all(number protowire.Number) (within messages) {
	for _, of := range m {
		for _, body := range of[number] {
			within = append(within, message(body))
		}
	}
	return within
}

func (f fields) number(number protowire.Number) (uint64, bool) {
	if len(f[number]) == 0 {
		return 0, false
	}
	if value := f[number][0]; len(value) == 8 {
		fixed, _ := protowire.ConsumeFixed64(value)
		return fixed, true
	}
	varint, n := protowire.ConsumeVarint(f[number][0])
	return varint, n > 0
}
