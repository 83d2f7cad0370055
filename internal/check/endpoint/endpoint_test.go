package endpoint_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
)

var collector = endpoint.Form{
	What: "otlp-forward", Hint: "use http://host:4318",
	Schemes: map[string]endpoint.Scheme{
		"http": {Port: "4318"}, "grpc": {IsGRPC: true, Port: "4317"}, "grpcs": {IsGRPC: true, IsTLS: true, Port: "443"},
	},
	IsBase: true,
}

func TestParse_SchemesAndPorts(t *testing.T) {
	for text, want := range map[string]struct {
		address, path string
		scheme        endpoint.Scheme
	}{
		"http://host":          {"host:4318", "", collector.Schemes["http"]},
		"http://[::1]:1/a%2fb": {"[::1]:1", "/a%2fb", collector.Schemes["http"]},
		"http://host/":         {"host:4318", "", collector.Schemes["http"]},
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
}

func TestParse_InvalidURLs(t *testing.T) {
	web := collector
	web.IsBase, web.IsWeb = false, true
	for text, why := range map[string]string{
		"ftp://host":            "unknown scheme",
		"host:4318":             "unknown scheme",
		"http://secret\x7f":     "not a URL",
		"http://a:secret@host":  "a user and a password are not supported",
		"http://host#secret":    "a fragment is not supported",
		"http://host?k=secret":  "a query is not supported",
		"http://":               "no host",
		"http://host:0":         "port 0 is not between 1 and 65535",
		"grpc://host/secret":    "a path is not supported",
		"unix://secret/path":    "the path of a socket must be absolute",
		"unix://" + long + long: "a socket's path has at most 107 bytes",
	} {
		_, err := collector.Parse(text)
		if want := "parse otlp-forward: " + why + "; use http://host:4318"; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if u, err := web.Parse("http://host/a/?k=v"); err != nil || u.Target() != "http://host:4318/a/?k=v" ||
		u.String() != "http://host:4318/a/" {
		t.Errorf("a query: %s, %v", u.Target(), err)
	}
}

var long = "/" + strings.Repeat("x", 60)
