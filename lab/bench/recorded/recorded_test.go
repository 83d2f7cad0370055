package recorded

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// spanTimes returns the times of all spans in a message, found by a protobuf library.
func spanTimes(t *testing.T, message []byte, path ...protowire.Number) (times []int64) {
	t.Helper()
	for len(message) > 0 {
		n, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			t.Fatal("the message can't be read")
		}
		message = message[length:]
		switch length = protowire.ConsumeFieldValue(n, kind, message); {
		case length < 0:
			t.Fatal("the message can't be read")
		case len(path) == 0 && kind == protowire.Fixed64Type && (n == 7 || n == 8):
			v, _ := protowire.ConsumeFixed64(message)
			times = append(times, int64(v))
		case len(path) > 0 && n == path[0]:
			within, _ := protowire.ConsumeBytes(message)
			times = append(times, spanTimes(t, within, path[1:]...)...)
		}
		message = message[length:]
	}
	return times
}

// TestRecordings: every recording is loaded with all spans and their times, and contains no
// data of the recording machine.
func TestRecordings(t *testing.T) {
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			r, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if r.Spans < 16 || r.IsGRPC() != (name == "python") ||
				r.IsJSON() != strings.HasSuffix(name, "-json") {
				t.Errorf("%d spans, %v", r.Spans, r.Header)
			}
			for _, top := range []string{"home", "root", "tmp", "usr"} {
				if bytes.Contains(r.Message, []byte("/"+top+"/")) {
					t.Errorf("it names a path of the machine that it was made on, below %s", top)
				}
			}
			if r.IsJSON() {
				return
			}
			before := spanTimes(t, r.Message, 1, 2, 2)
			if len(before) != 2*r.Spans {
				t.Fatalf("%d times of %d spans", len(before), r.Spans)
			}
			moved, to := bytes.Clone(r.Message), time.Unix(0, r.latest).Add(time.Hour)
			r.Stamp(moved, to)
			r.Stamp(moved, to) // always from the original, so that rounding errors don't add up
			for i, at := range spanTimes(t, moved, 1, 2, 2) {
				if at != before[i]+time.Hour.Nanoseconds() {
					t.Fatalf("time %d was %d and was moved to %d", i, before[i], at)
				}
			}
		})
	}
}
