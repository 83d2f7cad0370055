package daemon

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
)

// A configuration without a destination is an error, because statistics or traces would be lost.
// The error is returned before anything is created.
func TestConfig_WithoutDestination(t *testing.T) {
	config := usable(t)
	config.Agent.URL = agent.URL{}
	if err := config.Check(); err == nil || !strings.Contains(err.Error(), "there is no other destination") {
		t.Errorf("without any: %v", err)
	}
	if _, err := New(config); err == nil {
		t.Error("a daemon without any was made")
	}
	config.Exporters = []export.Exporter{elsewhere}
	if err := config.Check(); err != nil {
		t.Errorf("with another: %v", err)
	}
	config.APM.Addr = "127.0.0.1:8127"
	if err := config.Check(); err == nil || !strings.Contains(err.Error(), "forward traces") {
		t.Errorf("with traces and no agent: %v", err)
	}
}

// The sums of memory and connections include those of each destination.
func TestMemory_SumOfDestinations(t *testing.T) {
	one := usable(t)
	two := one
	two.Exporters = []export.Exporter{elsewhere}
	bytes := func(c *Config) map[string]int64 {
		parts := map[string]int64{}
		for _, part := range c.Memory().Parts {
			parts[part.Name] = part.Bytes
		}
		return parts
	}
	alone, both := bytes(&one), bytes(&two)
	for _, name := range []string{"payloads that wait", "payloads being made"} {
		if alone[name] == 0 || both[name] != 2*alone[name] {
			t.Errorf("%s: %d bytes for one destination, %d for two", name, alone[name], both[name])
		}
	}
	if more := two.Descriptors() - one.Descriptors(); more != destinationDescriptors {
		t.Errorf("%d more descriptors for another destination", more)
	}
}

// elsewhere is a destination that is configured, but does not exist.
var elsewhere = export.Exporter{Name: "elsewhere", URL: "http://elsewhere.example"}
