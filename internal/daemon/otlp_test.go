package daemon

import (
	"bytes"
	"net/http"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// exported is a request of OTLP with so many spans that have a name.
func exported(spans int, name string) []byte {
	nested := func(b []byte, n protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), message)
	}
	var scope []byte
	for i := range spans {
		id := protowire.AppendFixed64(nil, uint64(i+1))
		scope = nested(scope, 2, nested(nested(nested(nil, 1, append(make([]byte, 8), id...)), 2, id), 5, []byte(name)))
	}
	return nested(nil, 1, nested(nil, 2, scope))
}

// TestSpansOfSDKsReachTheAgent, and the books hold them.
func TestSpansOfSDKsReachTheAgent(t *testing.T) {
	p := startPair(t, func(c *Config) { c.OTLP.Addr = "127.0.0.1:0" })
	url := "http://" + p.Daemon.otlp.Addr() + "/v1/traces"
	for range 10 {
		resp, err := http.Post(url, "application/x-protobuf", bytes.NewReader(exported(20, "work")))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
	}
	if got := p.Daemon.health.Status().OTLP; got == nil || got.Requests["counted"] == 0 {
		t.Errorf("the status has %+v", got)
	}
	p.stop()
	books := p.Daemon.Books()
	if counted := p.Daemon.otlp.Stats().Requests; books.Received != 20*counted["counted"] || !books.Balanced || books.Flushed != books.Received || counted["counted"]+counted["counted_before"] != 10 {
		t.Errorf("books %+v, requests %v", books, counted)
	}
}
