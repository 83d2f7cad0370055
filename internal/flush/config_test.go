package flush

import (
	"testing"
	"time"
)

func TestConfigIsCheckedBeforeAnythingRuns(t *testing.T) {
	agent := AgentURL{"unix", "/nowhere"}
	for name, cfg := range map[string]Config{
		"no agent":             {},
		"payloads too small":   {Agent: agent, MaxPayloadBytes: minPayloadBytes - 1},
		"payloads too large":   {Agent: agent, MaxPayloadBytes: agentPayloadBytes + 1},
		"queue below one":      {Agent: agent, RetryBytes: DefaultMaxPayloadBytes - 1},
		"an age in the future": {Agent: agent, RetryAge: -time.Second},
		"no time to answer":    {Agent: agent, Timeout: -time.Second},
	} {
		if f, err := New(cfg); err == nil {
			f.Close(t.Context())
			t.Errorf("%s: accepted", name)
		}
	}
}
