package otel_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// TestIgnore_Attributes: rules match attributes of a span or its resource that are not
// labels, and they match again for an equal span.
func TestIgnore_Attributes(t *testing.T) {
	list, err := ignore.Parse([]string{
		"attribute.url.path=~^/static/", "attribute.http.route=/healthz",
		"attribute.k8s.namespace.name=test",
	})
	if err != nil {
		t.Fatal(err)
	}
	body := func(namespace string, attributes ...otlptest.Attribute) []byte {
		attrs := append(otlptest.SDK("shop"), otlptest.Attribute{"k8s.namespace.name", namespace})
		s := otlptest.Span{Name: "GET", Attributes: attributes}
		return otlptest.Request(otlptest.Resource{Attributes: attrs, Scopes: [][]otlptest.Span{{s, s}}})
	}
	c, policy := otel.NewCounter(), otel.NewPolicy(otel.Labels{Ignore: list})
	for range 2 {
		for name, one := range map[string]struct {
			body []byte
			want bool
		}{
			"a path":     {body("prod", otlptest.Attribute{"url.path", "/static/x.css"}), true},
			"a label":    {body("prod", otlptest.Attribute{"http.route", "/healthz"}), true},
			"a resource": {body("test"), true},
			"the span's": {body("test", otlptest.Attribute{"k8s.namespace.name", "prod"}), false},
			"other value": {body("prod", otlptest.Attribute{"url.path", "/orders"},
				otlptest.Attribute{"http.route", "/"}), false},
			"none": {body("prod"), false},
		} {
			spans := countedOf(t, c, one.body, policy)
			for _, s := range spans {
				if isIgnored := s.Flags&span.Ignored != 0; isIgnored != one.want {
					t.Errorf("%s: ignored %t", name, isIgnored)
				}
			}
			if len(spans) != 2 {
				t.Errorf("%s: %d spans", name, len(spans))
			}
		}
	}
}

// TestIgnore_LooksAtAPrefix: rules compare only a prefix of an attribute of 8 MB.
func TestIgnore_LooksAtAPrefix(t *testing.T) {
	list, err := ignore.Parse([]string{"attribute.url.query=~secret"})
	if err != nil {
		t.Fatal(err)
	}
	huge := strings.Repeat("x", 8<<20)
	c, policy := otel.NewCounter(), otel.NewPolicy(otel.Labels{Ignore: list})
	for value, want := range map[string]bool{
		"secret" + huge: true, huge + "secret": false, huge[:ignore.MaxValue-3] + "secret": false,
	} {
		s := otlptest.Span{Name: "GET", Attributes: []otlptest.Attribute{{"url.query", value}}}
		if err := c.Count(otlptest.SDKRequest(s, otlptest.Span{Name: "POST"}), policy); err != nil {
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
		if counted+ignored != 2 || (ignored == 1) != want {
			t.Errorf("%.7s of %d bytes: %d counted, %d ignored", value, len(value), counted, ignored)
		}
	}
}
