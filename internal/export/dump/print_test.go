package dump_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export/dump"
)

// An undecodable payload is reported with the position of the error, and no byte of it reaches a
// terminal unescaped.
func TestPrint_UndecodablePayload(t *testing.T) {
	var out bytes.Buffer
	err := (&dump.Refusal{
		Time: time.Unix(0, 0), Agent: "unix:///a", Spans: 1, Status: "400 Bad Request", ResponseBody: "\x1b[2J",
		RequestHeader: http.Header{"X": {"\x1b[2J"}}, RequestBody: []byte("\x81\xa5Stats\x91\xc0"),
	}).Print(&out)
	if err != nil || !strings.Contains(out.String(), "can't be decoded: decode payload: Stats: [0]: a nil "+
		"element") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%q", err, out.String())
	}
}
