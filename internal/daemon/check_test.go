package daemon

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// usable is the configuration with the defaults of the command line.
func usable(t *testing.T) Config {
	t.Helper()
	config := DefaultConfig()
	config.Agent.URL = agent.URL{Network: "tcp", Address: "127.0.0.1:8126"}
	if err := config.Check(); err != nil {
		t.Fatal(err)
	}
	return config
}

// Each part of the memory has a flag whose default can be lowered. Advice about memory knows every
// flag of the sum.
func TestMemory_EachPartHasFlag(t *testing.T) {
	config := usable(t)
	config.APM.Addr = "127.0.0.1:8127"
	config.MemoryLimit = memory.Limit{Bytes: 1, Source: "a test"}
	for _, part := range config.Memory().Parts {
		if part.Flag != "" && !config.canBeLower(part.Flag) {
			t.Errorf("%s: --%s can't be lower than its default", part.Name, part.Flag)
		}
	}
}
