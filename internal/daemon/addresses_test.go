package daemon_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
)

// TestAddresses_UsedTwice expects an error with both flags if two servers have the same path or
// address, or if a daemon would be its own agent.
func TestAddresses_UsedTwice(t *testing.T) {
	for _, c := range []struct {
		socket, apmSocket, http, apmAddr, agent string
		wantErr                                 string // "" if valid
	}{
		{"/a", "/b", ":1", "127.0.0.1:2", "http://127.0.0.1:8126", ""},
		{"/a", "", ":0", "127.0.0.1:0", "http://127.0.0.1:8126", ""},
		{"/a", "/a", ":1", "", "http://127.0.0.1:8126", "apm-socket: /a is also the address of --socket"},
		{"/d/../a", "/a", ":1", "", "http://127.0.0.1:8126", "the address of --socket"},
		{"/a", "", ":1", "127.0.0.1:1", "http://127.0.0.1:8126", "apm-addr: 127.0.0.1:1 is also the " +
			"address of --http-addr"},
		{"/a", "", "10.0.0.1:1", "0.0.0.0:1", "http://127.0.0.1:8126", "the address of --http-addr"},
		{"/a", "", "10.0.0.1:1", "127.0.0.1:1", "http://10.0.0.2:1", ""},
		{"/a", "", "localhost:1", "127.0.0.1:1", "http://agent:1", "the address of --http-addr"},
		{"/a", "/b", ":1", "", "unix:///b", "agent-url: /b is also the address of --apm-socket"},
		{"/a", "/b", ":1", "", "unix:///a", "the address of --socket"},
		{"/a", "", ":1", "127.0.0.1:8126", "http://127.0.0.1:8126", "the address of --apm-addr"},
		{"/a", "", ":8126", "", "http://localhost:8126", "the address of --http-addr"},
		{"/a", "", ":8126", "", "http://10.0.0.2:8126", ""}, // another machine, such as the node of a pod
	} {
		config := daemon.DefaultConfig()
		config.Ingest.Socket.Path, config.APM.Socket.Path = c.socket, c.apmSocket
		config.HTTPAddr, config.APM.Addr = c.http, c.apmAddr
		var err error
		if config.Agent.URL, err = exporter.ParseURL(c.agent); err != nil {
			t.Fatal(err)
		}
		err = config.Check()
		if (err != nil) != (c.wantErr != "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// If the daemon gets the application's OTEL_EXPORTER_OTLP_ENDPOINT, it would send metrics to
// itself.
func TestAddresses_MetricsToItself(t *testing.T) {
	for endpoint, is := range map[string]bool{
		"http://127.0.0.1:4318/v1/metrics": true,
		"http://localhost:4318":            true,
		"http://127.0.0.1:4319":            false,
		"http://10.0.0.2:4318":             false, "unix:///otlp": true, "unix:///other": false,
	} {
		config := daemon.DefaultConfig()
		config.OTLP.Addr, config.OTLP.Socket.Path = "127.0.0.1:4318", "/otlp"
		at, err := otlp.ParseEndpoint(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := otlp.New(otlp.Config{Variables: otlp.Variables{Endpoint: at}})
		if err != nil {
			t.Fatal(err)
		}
		config.Exporters = []export.Exporter{metrics.Describe()}
		err = config.Check()
		if (err != nil) != is || is && !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
