package endpoint_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export/endpoint"
)

var collector = endpoint.Form{
	What: "otlp-forward", Give: "give http://host:4318",
	Schemes: map[string]endpoint.Scheme{
		"http": {Port: "4318"}, "grpc": {IsGRPC: true, Port: "4317"}, "grpcs": {IsGRPC: true, IsTLS: true, Port: "443"},
	},
	IsWeb: true,
}

func TestParse_SchemesAndPorts(t *testing.T) {
	for text, want := range map[string]struct {
		address, path string
		scheme        endpoint.Scheme
	}{
		"http://host":          {"host:4318", "", collector.Schemes["http"]},
		"http://[::1]:1/a%2fb": {"[::1]:1", "/a%2fb", collector.Schemes["http"]},
		"grpc://host":          {"host:4317", "", collector.Schemes["grpc"]},
		"grpcs://host:9":       {"host:9", "", collector.Schemes["grpcs"]},
	} {
		got, err := collector.Parse(text)
		if err != nil || got.Address != want.address || got.Path() != want.path ||
			collector.Scheme(got) != want.scheme {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := collector.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s is read again as %s, %v", text, again, err)
		}
	}
	if _, err := collector.Parse("ftp://host"); err == nil || !strings.Contains(err.Error(), "give http") {
		t.Errorf("an unknown scheme: %v", err)
	}
}
