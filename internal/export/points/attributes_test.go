package points

import (
	"reflect"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

func TestAttributes_UniqueAndNonEmpty(t *testing.T) {
	a := attributes{format: &keyValues{}}
	a.beginList()
	a.reserveNames("reserved")
	a.addText("text", "first")
	a.addText("text", "second")
	a.addText("absent", "")
	a.addText("", "nameless")
	a.addText("reserved", "not here")
	a.addText("broken\xff", "val\xffue")
	a.addNumber("number", -3)
	a.addFlag("yes", true)
	a.addFlag("no", false)
	a.addTexts("list", []string{"x", "y\xff"})
	a.addTexts("empty", nil)
	want := map[string]any{
		"text":         "first",
		"broken\uFFFD": "val\uFFFDue",
		"number":       int64(-3),
		"yes":          true,
		"no":           false,
		"list":         []any{"x", "y\uFFFD"},
	}
	if got := readAttributes(t, a.bytes); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSpanName_AsInCollectorReceiver(t *testing.T) {
	for _, test := range []struct {
		key  span.Key
		want string
	}{
		{span.Key{Operation: "cart.add", Resource: "r"}, "cart.add"},
		{span.Key{Operation: "http.request", Resource: "r", HTTPMethod: "GET", HTTPEndpoint: "/x"}, "GET /x"},
		{span.Key{Operation: "web.request", Resource: "r", HTTPMethod: "GET"}, "GET"},
		{span.Key{Operation: "servlet.request", Resource: "POST /x/{id}"}, "POST /x/{id}"},
		{span.Key{Operation: "servlet.request", Resource: "PUT"}, "PUT"},
		{span.Key{Operation: "web.request", Resource: "/x"}, "web.request"},
		{span.Key{Operation: "flask.request", Resource: "GET /x"}, "flask.request"},
		{span.Key{Operation: "spring.handler", Resource: "Cart.add"}, "Cart.add"},
		{span.Key{Operation: "grpc.server", Resource: "/shop.Cart/Add"}, "shop.Cart/Add"},
		{span.Key{Operation: "grpc.client", Resource: "Add"}, "grpc.client"},
	} {
		if got := spanName(&test.key); got != test.want {
			t.Errorf("%s with %q is called %q, want %q", test.key.Operation, test.key.Resource, got,
				test.want)
		}
	}
}

func TestSpanKind_AsInCollectorReceiver(t *testing.T) {
	for _, test := range []struct{ operation, kind, kindOfWork, want, datadog string }{
		{"op", "Server", "", "SPAN_KIND_SERVER", "SPAN_KIND_SERVER"},
		{"op", "client", "web", "SPAN_KIND_CLIENT", "SPAN_KIND_CLIENT"},
		{"op", "producer", "", "SPAN_KIND_PRODUCER", "SPAN_KIND_PRODUCER"},
		{"op", "consumer", "", "SPAN_KIND_CONSUMER", "SPAN_KIND_CONSUMER"},
		{"op", "", "web", "SPAN_KIND_SERVER", "SPAN_KIND_INTERNAL"},
		{"op", "other", "http", "SPAN_KIND_CLIENT", "SPAN_KIND_INTERNAL"},
		{"op", "", "sql", "SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL"},
		{"spring.handler", "server", "web", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER"},
	} {
		k := &span.Key{Operation: test.operation, Kind: test.kind, Type: test.kindOfWork}
		if got := spanKind(k); got != test.want {
			t.Errorf("kind %q of %+v, want %q", got, k, test.want)
		}
		a := attributes{format: &keyValues{}}
		datadog{}.writeKey(&a, &span.Origin{}, k)
		if got := readAttributes(t, a.bytes)["span.kind"]; got != test.datadog {
			t.Errorf("as Datadog has it, kind %q of %+v, want %q", got, k, test.datadog)
		}
	}
}

func TestDimensions_Named(t *testing.T) {
	k := &span.Key{
		Service:      "s",
		Operation:    "o",
		Resource:     "r",
		HTTPStatus:   404,
		GRPCStatus:   "2",
		HTTPMethod:   "GET",
		HTTPEndpoint: "/x",
		PeerTags:     []string{"_dd.base_service:b", "db.type:mysql", "out.host:h"},
	}
	for text, want := range map[string]map[string]any{
		"none": {},
		"all": {
			"http.request.method":       "GET",
			"http.route":                "/x",
			"http.response.status_code": int64(404),
			"rpc.grpc.status_code":      int64(2),
			"db.system.name":            "mysql", "out.host": "h",
		},
		"all,-http.route, -out.host,-db.system.name,-rpc.grpc.status_code,-not.there": {
			"http.request.method": "GET", "http.response.status_code": int64(404),
		},
		"all,_dd.base_service,-http.request.method,-http.response.status_code,-http.route,-out.host": {
			"rpc.grpc.status_code": int64(2), "db.system.name": "mysql", "_dd.base_service": "b",
		},
		"http.route, db.system.name": {"http.route": "/x", "db.system.name": "mysql"},
		"dd.span.Resource":           {"dd.span.Resource": "r"},
		"http.response.status_code,rpc.grpc.status_code,_dd.base_service": {"http.response.status_code": int64(404), "rpc.grpc.status_code": int64(2), "_dd.base_service": "b"},
	} {
		dimensions, err := ParseDimensions(text)
		if err != nil {
			t.Fatal(err)
		}
		a := attributes{format: &keyValues{}}
		(&spanmetrics{dimensions: dimensions}).writeKey(&a, &span.Origin{Service: "s"}, k)
		got := readAttributes(t, a.bytes)
		for _, always := range []string{"service.name", "span.name", "span.kind"} {
			if got[always] == nil {
				t.Errorf("%q has no %s", text, always)
			}
			delete(got, always)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{
		"", "http.route,", "none,all", "a b", "http.route=x", "-http.route", "http.route,-out.host", "all,-",
		"all,-http.route=3", "all,-all", "all,-none", "none,-a", "all,a,-a", "all,-span.kind", "all,- a",
	} {
		if _, err := ParseDimensions(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestGRPCStatus_Names(t *testing.T) {
	for code, want := range map[string]string{
		"0": "OK", "16": "UNAUTHENTICATED", "17": "", "": "", "-1": "",
		"x": "",
	} {
		if got := grpcStatus(code); got != want {
			t.Errorf("status %q is called %q, want %q", code, got, want)
		}
	}
}

func TestLanguage_OpenTelemetryNames(t *testing.T) {
	for lang, want := range map[string]string{
		".NET": "dotnet", "jvm": "java", "javascript": "nodejs",
		"go": "go", "": "",
	} {
		if got := sdkLanguage(lang); got != want {
			t.Errorf("%q is called %q, want %q", lang, got, want)
		}
	}
}

func TestResource_Instance(t *testing.T) {
	for _, test := range []struct {
		origin span.Origin
		want   any
	}{
		{span.Origin{RuntimeID: "r", ContainerID: "c", Host: "h"}, "r"},
		{span.Origin{ContainerID: "c", Host: "h"}, "c"},
		{span.Origin{Host: "h"}, "h"},
		{span.Origin{}, nil},
	} {
		a := attributes{format: &keyValues{}}
		a.writeResource(&test.origin, "s")
		if got := readAttributes(t, a.bytes)["service.instance.id"]; got != test.want {
			t.Errorf("%+v is instance %v, want %v", test.origin, got, test.want)
		}
	}
}

// Spans of an OpenTelemetry SDK keep their names. The SDK is identified by its version, whatever a
// Datadog span with the same operation would be named.
func TestSpanName_SDKNamesAreKept(t *testing.T) {
	key := span.Key{
		Service:      "shop",
		Operation:    "http.request",
		Resource:     "checkout",
		Type:         "web",
		Kind:         "unspecified",
		HTTPMethod:   "GET",
		HTTPEndpoint: "/cart",
	}
	for _, test := range []struct{ version, name, kind string }{
		{"otlp-1.52.0", "checkout", "SPAN_KIND_UNSPECIFIED"},
		{"1.52.0", "GET /cart", "SPAN_KIND_SERVER"},
	} {
		a := attributes{format: &keyValues{}}
		(&spanmetrics{dimensions: Dimensions{all: true}}).writeKey(&a,
			&span.Origin{Service: "shop", TracerVersion: test.version}, &key)
		got := readAttributes(t, a.bytes)
		if got["span.name"] != test.name || got["span.kind"] != test.kind {
			t.Errorf("%s: %v", test.version, got)
		}
	}
}

// The resource of an SDK has no attribute of Datadog.
func TestResource_SDKHasNoDatadogAttributes(t *testing.T) {
	a := attributes{format: &keyValues{}}
	a.writeResource(&span.Origin{
		Service: "shop", Lang: "webjs", TracerVersion: "otlp-2.1.0", RuntimeID: "rid",
		LangVersion: "22", LangInterpreter: "node",
	}, "shop")
	want := map[string]any{
		"service.name":           "shop",
		"service.instance.id":    "rid",
		"telemetry.sdk.name":     "opentelemetry",
		"telemetry.sdk.language": "webjs",
		"telemetry.sdk.version":  "2.1.0", "process.runtime.name": "node", "process.runtime.version": "22",
	}
	if got := readAttributes(t, a.bytes); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// readAttributes decodes a list of attributes, and fails the test if a name occurs twice.
func readAttributes(t testing.TB, message []byte) map[string]any {
	t.Helper()
	list := map[string]any{}
	for f := range protolite.Fields(message) {
		if f.Number != fieldList || f.Bytes == nil {
			continue
		}
		var key string
		var value any
		for f := range protolite.Fields(f.Bytes) {
			switch f.Number {
			case fieldKey:
				key = string(f.Bytes)
			case fieldValue:
				value = readValue(f.Bytes)
			}
		}
		if _, twice := list[key]; twice || value == nil {
			t.Errorf("attribute %q comes twice, or without a value", key)
		}
		list[key] = value
	}
	return list
}

func readValue(message []byte) (value any) {
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldText:
			return string(f.Bytes)
		case fieldBool:
			return f.Value == 1
		case fieldInt:
			return int64(f.Value)
		case fieldArray:
			list := []any{}
			for f := range protolite.Fields(f.Bytes) {
				list = append(list, readValue(f.Bytes))
			}
			return list
		}
	}
	return nil
}
