package daemon

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// usable is the configuration of the command line's defaults.
func usable(t *testing.T) Config {
	t.Helper()
	config := DefaultConfig()
	config.Agent.URL = agent.URL{Network: "tcp", Address: "127.0.0.1:8126"}
	if err := config.Check(); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestEachPartOfTheMemoryHasAFlagThatCanBeLower, as long as it is at its default: there
// is no flag in the sum that advice about memory does not know.
func TestEachPartOfTheMemoryHasAFlagThatCanBeLower(t *testing.T) {
	config := usable(t)
	config.APM.Addr = "127.0.0.1:8127"
	config.MemoryLimit = memory.Limit{Bytes: 1, Source: "a test"}
	for _, part := range config.Memory().Parts {
		if part.Flag != "" && !config.canBeLower(part.Flag) {
			t.Errorf("%s: --%s can't be lower than its default", part.Name, part.Flag)
		}
	}
}
