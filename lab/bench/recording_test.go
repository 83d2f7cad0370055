package bench

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// startsOf returns the start times of all spans in a body, found by a decoder of the format.
func startsOf(t *testing.T, format string, body []byte) (starts []int64) {
	t.Helper()
	var decoded any
	d := msgpack.NewDecoder(bytes.NewReader(body))
	d.SetMapDecoder(func(d *msgpack.Decoder) (any, error) { return d.DecodeUntypedMap() })
	if err := d.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	start := func(v any) {
		switch v := v.(type) {
		case int64:
			starts = append(starts, v)
		case uint64:
			starts = append(starts, int64(v))
		default:
			t.Fatalf("a start is %T", v)
		}
	}
	switch format {
	case "v0.4":
		for _, trace := range decoded.([]any) {
			for _, span := range trace.([]any) {
				start(span.(map[any]any)["start"])
			}
		}
	case "v0.5":
		for _, trace := range decoded.([]any)[1].([]any) {
			for _, span := range trace.([]any) {
				start(span.([]any)[6])
			}
		}
	case "v1.0":
		number := func(m any, n int8) any {
			for k, v := range m.(map[any]any) {
				if k == n {
					return v
				}
			}
			t.Fatalf("no field %d in %v", n, m)
			return nil
		}
		for _, chunk := range number(decoded, 11).([]any) {
			for _, span := range number(chunk, 4).([]any) {
				start(number(span, 6))
			}
		}
	}
	return starts
}

// TestRecordings: every recording is loaded completely, and stamp changes its start times and
// nothing else.
func TestRecordings(t *testing.T) {
	for _, format := range Recorded {
		t.Run(format, func(t *testing.T) {
			r, err := loadRecording(format)
			if err != nil {
				t.Fatal(err)
			}
			before := startsOf(t, format, r.body)
			if len(before) != r.spans || r.counted == 0 || r.counted > r.spans {
				t.Fatalf("%d spans, of which %d are counted, but there are %d", r.spans, r.counted,
					len(before))
			}
			moved, to := bytes.Clone(r.body), time.Unix(0, r.latest).Add(time.Hour)
			r.stamp(moved, to)
			r.stamp(moved, to) // always from the original, so that rounding errors don't add up
			for i, start := range startsOf(t, format, moved) {
				if start != before[i]+time.Hour.Nanoseconds() {
					t.Fatalf("span %d began at %d and was moved to %d", i, before[i], start)
				}
			}
			for _, of := range []string{"home", "tmp", "root"} {
				if bytes.Contains(r.body, []byte("/"+of+"/")) {
					t.Errorf("it names a path of the machine that it was made on, below %s", of)
				}
			}
		})
	}
}

// TestMessage_EqualsRequest: a tracer sends the request as recorded, apart from the counted
// marker.
func TestMessage_EqualsRequest(t *testing.T) {
	r, err := loadRecording("v0.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, computes := range []bool{false, true} {
		message := r.message(computes)
		message.Body = io.NopCloser(bytes.NewReader(r.body))
		var sent bytes.Buffer
		if err := message.Write(&sent); err != nil {
			t.Fatal(err)
		}
		request, err := http.ReadRequest(bufio.NewReader(&sent))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(request.Body)
		if err != nil || !bytes.Equal(body, r.body) || request.URL.Path != "/v0.5/traces" {
			t.Errorf("%s with %d bytes, %v", request.URL, len(body), err)
		}
		if mark := request.Header.Get(headerComputedStats); (mark != "") != computes ||
			request.Header.Get("X-Datadog-Trace-Count") != "96" {
			t.Errorf("the header is %v", request.Header)
		}
	}
}
