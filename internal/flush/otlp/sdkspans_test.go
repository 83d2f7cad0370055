package otlp

import (
	"reflect"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestSpansOfAnSDKKeepTheirNames: they are called what OpenTelemetry's SDK called them, by
// one that is known by its version, whatever a Datadog span with that operation would be.
func TestSpansOfAnSDKKeepTheirNames(t *testing.T) {
	key := span.Key{
		Service: "shop", Operation: "http.request", Resource: "checkout", Type: "web", Kind: "unspecified", HTTPMethod: "GET", HTTPEndpoint: "/cart",
	}
	for _, test := range []struct{ version, name, kind string }{
		{"otlp-1.52.0", "checkout", "SPAN_KIND_UNSPECIFIED"},
		{"1.52.0", "GET /cart", "SPAN_KIND_SERVER"},
	} {
		var a attributes
		withAll().key(&a, &span.Origin{Service: "shop", TracerVersion: test.version}, &key)
		got := readAttributes(t, a.bytes, fieldPointAttributes)
		if got["span.name"] != test.name || got["span.kind"] != test.kind {
			t.Errorf("%s: %v", test.version, got)
		}
	}
}

// TestTheResourceOfAnSDKIsItsOwn, and says nothing of Datadog.
func TestTheResourceOfAnSDKIsItsOwn(t *testing.T) {
	var a attributes
	a.resource(&span.Origin{Service: "shop", Lang: "webjs", TracerVersion: "otlp-2.1.0", RuntimeID: "rid", LangVersion: "22", LangInterpreter: "node"}, "shop")
	want := map[string]any{
		"service.name": "shop", "service.instance.id": "rid", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.language": "webjs",
		"telemetry.sdk.version": "2.1.0", "process.runtime.name": "node", "process.runtime.version": "22",
	}
	if got := readAttributes(t, a.bytes, fieldResourceAttributes); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSpansThatAreOKAreASeries of their own, beside those of which nobody said so: of an
// SDK, whose statuses are three.
func TestSpansThatAreOKAreASeries(t *testing.T) {
	for _, test := range []struct {
		version string
		want    map[string]float64
	}{
		{"otlp-1.52.0", map[string]float64{"STATUS_CODE_OK": 1, "STATUS_CODE_UNSET": 2, "STATUS_CODE_ERROR": 4}},
		{"1.52.0", map[string]float64{"STATUS_CODE_UNSET OK": 1, "STATUS_CODE_UNSET": 2, "STATUS_CODE_ERROR": 4}},
	} {
		c := newCycle()
		origin := c.Origin(span.Origin{Service: "shop", TracerVersion: test.version})
		unset := c.Key(origin, span.Key{Service: "shop", Resource: "checkout"})
		ok := c.Key(origin, span.Key{Service: "shop", Resource: "checkout", Operation: "checkout", AdditionalTags: []string{span.StatusOK}})
		for _, of := range []struct {
			key   registry.KeyID
			flags span.Flags
			spans int
		}{{ok, 0, 1}, {unset, 0, 2}, {unset, span.Error, 4}} {
			for range of.spans {
				c.Add(0, of.key, time.Second, 1000, of.flags, 1)
			}
		}
		got := map[string]float64{}
		for _, p := range mustRead(t, encodeAll(t, withAll(), c))[0].Metrics[callsName].Points {
			status := p.Attributes["status.code"].(string)
			if more, has := p.Attributes["otel.status_code"]; has {
				status += " " + more.(string)
			}
			got[status] += float64(*p.Calls)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", test.version, got, test.want)
		}
	}
}
