package checkclient

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// spansAt returns a batch of two spans that differ from the spans of any other second.
func spansAt(second int64) []byte {
	b := wire.BeginSpans(nil)
	for i := range int64(2) {
		b = wire.AppendWhole(b, webKey(), 5, noon.UnixNano()-second*1e9+i, span.TopLevel, 1)
	}
	wire.EndSpans(b, 0, 2)
	return b
}

func asking(earlier string) []byte {
	return wire.AppendHello(nil, &wire.Hello{Version: 1, Settled: true, Earlier: earlier})
}

// TestCrash_LostAndDuplicateSpans: after a crash of the daemon, the check reports which spans a
// client loses or counts twice.
func TestCrash_LostAndDuplicateSpans(t *testing.T) {
	ambiguous := wire.AppendLost(nil, wire.Lost{"ambiguous": 2})
	for _, test := range []struct {
		name        string
		first, next [][]byte
		want        string // expected note; empty if the client is correct
	}{
		{
			"well",
			[][]byte{asking(""), spansAt(1), spansAt(2), spansAt(3), spansAt(4)},
			[][]byte{asking("check-1"), spansAt(3), spansAt(4), ambiguous, spansAt(5)},
			"",
		},
		{
			"with a number in the place of a key",
			[][]byte{asking(""), spansAt(1), spansAt(2), define(7, webKey()), numbered(7)},
			[][]byte{asking("check-1"), define(0, webKey()), numbered(0), ambiguous, spansAt(5)},
			"",
		},
		{
			"it does not ask for settled",
			[][]byte{hello(), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{hello()},
			"hello does not say settled",
		},
		{
			"it does not ask",
			[][]byte{asking(""), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{asking("")},
			`hello says earlier "", and the token`,
		},
		{
			"it asks before anybody died",
			[][]byte{asking("x"), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{asking("check-1"), spansAt(3), ambiguous},
			`hello says earlier "x"`,
		},
		{
			"nothing comes again",
			[][]byte{asking(""), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{asking("check-1"), ambiguous},
			"2 spans that no destination has were not handed over again",
		},
		{
			"what is settled comes again",
			[][]byte{asking(""), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{asking("check-1"), spansAt(1), spansAt(3), ambiguous},
			"a span comes again that is settled or doubtful",
		},
		{
			"what is doubtful comes again",
			[][]byte{asking(""), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{asking("check-1"), spansAt(3), spansAt(2), ambiguous},
			"a span comes again that is settled or doubtful",
		},
		{
			"what is new comes first",
			[][]byte{asking(""), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{asking("check-1"), spansAt(9), spansAt(3), ambiguous},
			"a span comes before, or instead of",
		},
		{
			"what is doubtful is not reported",
			[][]byte{asking(""), spansAt(1), spansAt(2), spansAt(3)},
			[][]byte{asking("check-1"), spansAt(3)},
			"2 doubtful spans were not reported",
		},
		{
			"it sends too little",
			[][]byte{asking(""), spansAt(1)},
			[][]byte{asking("")},
			"1 batches came, and 2 connections",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, 2, func(c *Config) { c.Dies = true })
			s.send(t, test.first...)
			s.send(t, test.next...)
			out, err := s.wait(t)
			if err != nil {
				out += err.Error()
			}
			if (err == nil) != (test.want == "") || !strings.Contains(out, test.want) {
				t.Errorf("%q is not in:\n%s", test.want, out)
			}
		})
	}
}

// TestGoClient_ReplaysExpectedSpans: the Go client of this repository replays exactly the spans that
// the check expects.
func TestGoClient_ReplaysExpectedSpans(t *testing.T) {
	s := serve(t, 2, func(c *Config) { c.Now, c.Dies = time.Now, true })
	c, err := client.Open(client.Config{
		Socket: s.path, MaxAge: time.Millisecond,
		MaxBackoff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		key := client.Key{Service: "shop", Operation: "op", Resource: fmt.Sprint("r", i%3), Kind: "server"}
		c.Publish([]client.Snapshot{
			{Key: key, Duration: time.Millisecond, End: time.Now()},
			{Key: key, Duration: time.Second, End: time.Now()},
		})
		eventually.True(t, "it is sent", func() bool { return c.Stats().Buffered == 0 })
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	out, err := s.wait(t)
	if stats := c.Stats(); err != nil || stats.Ambiguous == 0 || stats.Unconfirmed > 0 ||
		stats.Unsettled > 0 {
		t.Errorf("%v; the client says %+v\n%s", err, stats, out)
	}
}
