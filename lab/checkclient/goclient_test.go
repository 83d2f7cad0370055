package checkclient

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// TestGoClient_PassesCheck: the Go client of this repository sends nothing malformed, dropped or
// normalized, and gets no advice.
func TestGoClient_PassesCheck(t *testing.T) {
	s := serve(t, 1, func(c *Config) {
		c.Now, c.Features.PeerTags = time.Now, []string{"db.name", "out.host"}
	})
	c, err := client.Open(client.Config{
		Socket: s.path,
		Origin: client.Origin{Service: "shop", Env: "prod", Lang: "go"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		key := client.Key{
			Service:   "shop",
			Operation: "postgres.query",
			Resource:  fmt.Sprint("SELECT ", i%50),
			Type:      "sql",
			Kind:      "client",
			PeerTags:  []string{"db.name:orders", "out.host:db"}, TraceRoot: client.TraceRootFalse,
		}
		snapshot := client.Snapshot{
			Key: key, Duration: time.Millisecond, End: time.Now(), Error: i%7 == 0,
			TopLevel: i%2 == 0, Weight: 1.5,
		}
		if i%3 == 0 {
			snapshot.Encoded = client.EncodeKey(key)
		}
		c.Publish([]client.Snapshot{snapshot})
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Errorf("flush: %v", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	out, err := s.wait(t)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, kind := range []string{noteMalformed, noteDropped, noteNormalized, noteAdvice} {
		if strings.Contains(out, kind+": ") {
			t.Errorf("there is something %s:\n%s", kind, out)
		}
	}
	for _, want := range []string{
		"#1 hello ", `service "shop"`, `#1 answer    type "welcome"`, "#1 define",
		"#1 spans", "#1 flush", `type "flush"`, "well true", "spans 2000", "normalized 0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}
