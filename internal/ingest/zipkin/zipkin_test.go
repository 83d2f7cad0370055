package zipkin

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"google.golang.org/protobuf/encoding/protowire"
)

// inProtobuf returns a ListOfSpans message with one client span.
func inProtobuf() []byte {
	nested := func(b []byte, n protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), message)
	}
	s := nested(nested(nil, 1, make([]byte, 16)), 3, []byte("spanspan"))
	s = nested(s, 1, []byte("tracetra"))
	s = protowire.AppendVarint(protowire.AppendTag(s, 4, protowire.VarintType), 1)
	s = nested(s, 5, []byte("put /"))
	s = protowire.AppendFixed64(protowire.AppendTag(s, 6, protowire.Fixed64Type),
		uint64(time.Now().UnixMicro()))
	s = protowire.AppendVarint(protowire.AppendTag(s, 7, protowire.VarintType), 10)
	return nested(nil, 1, nested(s, 8, nested(nil, 1, []byte("cart"))))
}

const protobuf = mediaProtobuf

// TestRequest_EachEncoding checks that requests in every encoding get Zipkin's response, and are counted by service.
func TestRequest_EachEncoding(t *testing.T) {
	h := newHarness(t, nil)
	both := append(append(reported("shop", 3, 1)[:len(reported("shop", 3, 1))-1], ','),
		reported("cart", 3, 2)[1:]...)
	for _, c := range []struct {
		body   []byte
		header []string
	}{
		{reported("shop", 1, 3), []string{"Content-Type", "application/json"}},
		{
			packed(reported("shop", 2, 2)),
			[]string{"Content-Encoding", "GZIP", "Content-Type", "application/json; charset=utf-8"},
		},
		{both, nil},
		{inProtobuf(), []string{"Content-Type", protobuf}},
		{
			packed(append(inProtobuf(), 0x80, 0x01, 1)),
			[]string{"Content-Type", protobuf, "Content-Encoding", "gzip"},
		},
		{nil, []string{"Content-Type", protobuf}},
		{[]byte("[]"), nil}, // reporters send an empty list to check whether the server is Zipkin
	} {
		if a := h.post(c.body, c.header...); a.status != http.StatusAccepted || a.body != "" {
			t.Errorf("%q is answered %+v", c.body, a)
		}
	}
	h.stop()
	if want := map[string]uint64{
		"shop server get /": 6, "cart server get /": 2,
		"cart client put /": 2,
	}; !maps.Equal(h.rows, want) {
		t.Errorf("counted %v, want %v", h.rows, want)
	}
}

// TestRequest_ManyServices checks, for both encodings, that each span is counted under its service.
func TestRequest_ManyServices(t *testing.T) {
	h := newHarness(t, nil)
	var list, inJSON []byte
	for i := range 40 {
		name := fmt.Sprintf("%04d", i)
		list = append(list, bytes.ReplaceAll(inProtobuf(), []byte("cart"), []byte(name))...)
		one := reported(name, 1, 1)
		inJSON = append(append(inJSON, one[1:len(one)-1]...), ',')
	}
	inJSON[len(inJSON)-1] = ']'
	for media, body := range map[string][]byte{
		protobuf: list, "application/json": append([]byte{'['}, inJSON...),
	} {
		if a := h.post(body, "Content-Type", media); a.status != http.StatusAccepted {
			t.Errorf("%s is answered %+v", media, a)
		}
	}
	h.stop()
	stats := h.admit.Stats()
	if len(h.rows) != 80 || stats.Received != 80 || stats.DroppedTotal() != 0 ||
		stats.Collapsed["origin"] != 16 || stats.Collapsed["service"] != 0 {
		t.Errorf("%+v: %v", stats, h.rows)
	}
}

// TestRefusal_InvalidRequests checks the responses to invalid requests, and their results in the statistics.
func TestRefusal_InvalidRequests(t *testing.T) {
	h := newHarness(t, nil)
	for _, c := range []struct {
		method, path string
		body         []byte
		header       []string
		status       int
		says, result string
	}{
		{"POST", "/api/v1/spans", nil, nil, 404, "API v2, POST /api/v2/spans", "refused"},
		{"POST", "/", nil, nil, 404, path, "refused"},
		{"GET", path, nil, nil, 405, "only POST", "refused"},
		{"POST", path, nil, []string{"Content-Encoding", "br"}, 415, "gzip, zstd", "refused"},
		// A browser sends these media types for any page, without asking for permission first.
		{"POST", path, reported("shop", 9, 1), []string{"Content-Type", "text/plain"}, 415, mediaJSON, "refused"},
		{
			"POST", path, reported("shop", 9, 1),
			[]string{"Content-Type", "multipart/form-data; boundary=x"},
			415, mediaProtobuf, "refused",
		},
		{"POST", path, reported("shop", 9, 1), []string{"Content-Type", ""}, 415, "Content-Type", "refused"},
		{"POST", path, []byte("{}"), nil, 400, "not a list of spans", "unparsable"},
		{"POST", path, []byte("no gzip"), []string{"Content-Encoding", "gzip"}, 400, "not valid gzip", "unparsable"},
		{"POST", path, inProtobuf(), nil, 400, "Content-Type", "unparsable"},
		{
			"POST", path, reported("shop", 1, 1),
			[]string{"Content-Type", protobuf},
			400, "not a list of spans",
			"unparsable",
		},
		{"POST", path, make([]byte, 1<<20+1), nil, 413, "--zipkin-max-body", "too_large"},
		{
			"POST", path, packed(make([]byte, 2<<20)),
			[]string{"Content-Encoding", "gzip"},
			413,
			"--zipkin-max-body", "too_large",
		},
	} {
		before := h.Status().Requests[c.result]
		a := h.send(c.method, c.path, c.body, c.header...)
		if a.status != c.status || !strings.Contains(a.body, c.says) ||
			h.Status().Requests[c.result] != before+1 {
			t.Errorf("%+v is answered %+v; %v", c.path, a, h.Status().Requests)
		}
	}
	if a := h.send("GET", path, nil); a.header.Get("Allow") != "POST" {
		t.Errorf("%v", a.header)
	}
}

// TestRefusal_ExplainsUncountable checks that the responses explain why requests can't be counted.
func TestRefusal_ExplainsUncountable(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.RingSlots = 64 })
	if a := h.post(reported("shop", 1, 1000)); a.status != http.StatusRequestEntityTooLarge ||
		!strings.Contains(a.body, "--ring-slots") {
		t.Errorf("more spans than slots are answered %+v", a)
	}
	h.admit.SetStatsWanted(false)
	if a := h.post(reported("shop", 2, 1)); a.status != http.StatusAccepted {
		t.Errorf("an unwanted request is answered %+v", a)
	}
	h.admit.SetStatsWanted(true)
	policy := h.policy
	h.policy = nil
	if a := h.post(reported("shop", 3, 1)); a.status != http.StatusInternalServerError {
		t.Errorf("a defect is answered %+v", a)
	}
	h.policy = policy
	if a := h.post(reported("shop", 4, 1)); a.status != http.StatusAccepted {
		t.Errorf("after the defect: %+v", a)
	}
	got := h.Status().Requests
	if got["too_many"] != 1 || got["not_wanted"] != 1 || got["bug"] != 1 || got["counted"] != 1 {
		t.Errorf("%v", got)
	}
}

// TestAccounting_RingsFull checks that spans that find the rings full are counted as dropped, with and without
// an upstream, because reporters do not retry.
func TestAccounting_RingsFull(t *testing.T) {
	const spans = 40
	to := newDestination(t, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusAccepted) })
	for isForwarded, status := range map[bool]int{false: http.StatusServiceUnavailable, true: http.StatusAccepted} {
		h := newIdleHarness(t, func(c *Config, a *aggregate.Config) {
			a.RingSlots, a.Drainers = 64, 1
			if isForwarded {
				forwardTo(t, to.URL)(c, a)
			}
		})
		for number, want := range []int{http.StatusAccepted, status} {
			if a := h.post(reported("shop", number, spans)); a.status != want {
				t.Errorf("forwarded %v: request %d is answered %+v", isForwarded, number, a)
			}
		}
		h.aggregator.Start()
		h.stop()
		if got := h.admit.Stats(); got.Received != 2*spans || got.Dropped["refused"] != spans ||
			h.Status().Requests["no_room"] != 1 {
			t.Errorf("forwarded %v: received %d, dropped %v", isForwarded, got.Received, got.Dropped)
		}
	}
}

// TestForward_BytesUnchanged checks that requests are forwarded byte for byte with their headers, whatever the path of the
// upstream's URL. Unparsable requests are forwarded as well, but not bodies that are too long after decompression.
func TestForward_BytesUnchanged(t *testing.T) {
	for _, end := range []string{"", "/", path} {
		to := newDestination(t, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusAccepted) })
		h := newHarness(t, forwardTo(t, to.URL+end))
		bodies := [][]byte{packed(reported("shop", 1, 2)), []byte("what is that?")}
		for i, body := range bodies {
			header := []string{
				"X-B3-Sampled", "0", "Content-Type", "application/json", "Accept-Encoding",
				"gzip",
			}
			if i == 0 {
				header = append(header, "Content-Encoding", "gzip")
			}
			if a := h.post(body, header...); a.status != http.StatusAccepted || a.body != "" {
				t.Errorf("answered %+v", a)
			}
			if to.path != path || to.bodies[i] != string(body) || to.header.Get("X-B3-Sampled") != "0" ||
				to.header.Get("Content-Type") != "application/json" ||
				to.header.Get("Content-Encoding") != map[bool]string{true: "gzip"}[i == 0] ||
				to.header.Get("Accept-Encoding") != "" {
				t.Errorf("%s %q with %v", to.path, to.bodies[i], to.header)
			}
		}
		bomb := packed(make([]byte, 2<<20))
		if a := h.post(bomb, "Content-Encoding", "gzip"); a.status != http.StatusRequestEntityTooLarge ||
			len(to.bodies) != 2 {
			t.Errorf("a bomb is answered %+v, and %d requests were forwarded", a, len(to.bodies))
		}
		h.stop()
		if got := h.Status(); h.rows["shop server get /"] != 2 || got.Forwarded["accepted"] != 2 ||
			got.Requests["unparsable"] != 1 || got.Refusal != nil {
			t.Errorf("%v; %+v", h.rows, got)
		}
	}
}

// TestForward_UpstreamResponseReturned also checks that a retried request is counted once.
func TestForward_UpstreamResponseReturned(t *testing.T) {
	for status, outcome := range map[int]string{
		200: "accepted", 202: "accepted", 400: "refused", 404: "refused",
		408: "retryable", 429: "retryable", 500: "retryable", 503: "retryable",
	} {
		to := newDestination(t, func(w http.ResponseWriter, n int) {
			if w.Header().Set("Content-Type", "text/x-test"); n == 1 {
				w.WriteHeader(status)
				_, _ = w.Write([]byte("refusal"))
			}
		})
		h := newHarness(t, forwardTo(t, to.URL))
		body := reported("shop", 1, 3)
		if a := h.post(body); a.status != status || a.body != "refusal" ||
			a.header.Get("Content-Type") != "text/x-test" {
			t.Errorf("%d: answered %+v", status, a)
		}
		got := h.Status()
		if got.Forwarded[outcome] != 1 || (got.Refusal == nil) != (outcome == "accepted") ||
			got.Refusal != nil && !strings.Contains(got.Refusal.Message, "refusal") {
			t.Errorf("%d: %+v", status, got)
		}
		if outcome != "accepted" {
			if a := h.post(body); a.status != http.StatusOK {
				t.Errorf("%d: another try is answered %+v", status, a)
			}
		}
		h.stop()
		if h.rows["shop server get /"] != 3 {
			t.Errorf("%d: counted %v", status, h.rows)
		}
	}
}

// TestUpstream_Unavailable covers upstreams that are unreachable, send truncated responses, or close the
// connection. The spans are counted.
func TestUpstream_Unavailable(t *testing.T) {
	unreachable := newDestination(t, nil)
	unreachable.Close()
	breaks := newDestination(t, func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) })
	for _, to := range []*destined{unreachable, breaks} {
		h := newHarness(t, forwardTo(t, to.URL))
		if a := h.post(reported("shop", 1, 1)); a.status != http.StatusServiceUnavailable ||
			!strings.Contains(a.body, "does not respond") {
			t.Errorf("answered %+v", a)
		}
		if got := h.Status(); got.Forwarded["unreachable"] != 1 || got.Refusal == nil || got.Refusal.HasResponded {
			t.Errorf("%+v", got)
		}
		h.stop()
		if h.rows["shop server get /"] != 1 {
			t.Errorf("counted %v", h.rows)
		}
	}
}

func TestExemplars_ForwardedSpans(t *testing.T) {
	to := newDestination(t, func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusAccepted) })
	table := exemplars.New(1)
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forwardTo(t, to.URL)(c, a)
		c.Exemplars = table
	})
	h.post(reported("shop", 41, 1))
	h.stop()
	if got := table.Counts(); got.Taken != 1 {
		t.Errorf("%+v", got)
	}
}

func TestConfig_ValidAndInvalid(t *testing.T) {
	c := DefaultConfig()
	if err := c.Check(); err != nil || c.Memory(1) != nil || c.MaxUpstreamConnections() != 0 {
		t.Errorf("%v, %v", err, c.Memory(1))
	}
	c.MaxBody = c.MaxBodyBytes + 1
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "zipkin-max-body-bytes") {
		t.Errorf("%v", err)
	}
	for _, url := range []string{
		"grpc://zipkin", "ftp://zipkin", "http://user:secret@zipkin",
		"http://secret\x7f", "zipkin:9411",
	} {
		if _, err := Protocol.Parse(url); err == nil ||
			!strings.HasPrefix(err.Error(), "parse zipkin-forward: ") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if to, err := Protocol.Parse("http://zipkin"); err != nil || to.String() != "http://zipkin:9411" {
		t.Errorf("%v, %v", to, err)
	}
}
