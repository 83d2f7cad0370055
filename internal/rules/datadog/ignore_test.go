package datadog_test

import (
	"strings"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
)

// TestIgnore_Tags: a span with a matching tag is ignored, by the rules of the agent and of
// tracers, even if it is too long for a fingerprint. Other spans of the trace are counted.
func TestIgnore_Tags(t *testing.T) {
	list, err := ignore.Parse([]string{"attribute.url.path=~^/static/", "attribute.db.name=scratch"})
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range []datadog.Labels{{Ignore: list}, {Ignore: list, OfTracer: true}} {
		policy, ok := datadog.NewPolicy(agentPeerTags, []string{"client", "server"}, nil, labels)
		if !ok {
			t.Fatal("the policy is refused")
		}
		for _, long := range []string{"", strings.Repeat("x", 9000)} {
			traces := webTraces(8)
			for i := range traces {
				for at := range traces[i] {
					traces[i][at].Resource += long
				}
				traces[i][0].Meta["url.path"] = []string{"/static/a", "/orders"}[i%2]
				traces[i][2].Meta["db.name"] = []string{"orders", "scratch"}[i%2]
			}
			c := datadog.NewCounter()
			for range 2 {
				if err := c.Count(decode.FormatV04, encode(t, traces), "go", true, policy); err != nil {
					t.Fatal(err)
				}
				ignored, spans := 0, 0
				for _, s := range countedBy(t, c) {
					if spans++; s.Flags&span.Ignored != 0 {
						ignored++
					}
				}
				// the second span of a trace has the tags of its root
				if ignored != 4*2+4 || spans <= ignored {
					t.Errorf("of %d spans %d are ignored, want 12", spans, ignored)
				}
			}
		}
	}
}

// TestIgnore_LooksAtAPrefix: rules compare only a prefix of a long tag.
func TestIgnore_LooksAtAPrefix(t *testing.T) {
	list, err := ignore.Parse([]string{"attribute.url.query=~secret"})
	if err != nil {
		t.Fatal(err)
	}
	policy, ok := datadog.NewPolicy(agentPeerTags, []string{"client", "server"}, nil, datadog.Labels{Ignore: list})
	if !ok {
		t.Fatal("the policy is refused")
	}
	huge := strings.Repeat("x", 4_000)
	c := datadog.NewCounter()
	for value, want := range map[string]bool{
		"secret" + huge: true, huge + "secret": false, huge[:ignore.MaxValue-3] + "secret": false,
	} {
		traces := webTraces(1)
		traces[0][0].Meta["url.query"] = value
		if err := c.Count(decode.FormatV04, encode(t, traces), "go", true, policy); err != nil {
			t.Fatal(err)
		}
		counted, ignored := 0, 0
		for _, batch := range c.Batches {
			for i := range batch.Snapshots {
				if batch.Snapshots[i].Flags&span.Ignored != 0 {
					ignored++
				} else {
					counted++
				}
			}
		}
		if (ignored > 0) != want || counted == 0 {
			t.Errorf("%.7s of %d bytes: %d counted, %d ignored", value, len(value), counted, ignored)
		}
	}
}
