package flush

import (
	"testing"
	"time"
)

func TestConfigIsCheckedBeforeAnythingRuns(t *testing.T) {
	for name, cfg := range map[string]Config{
		"payloads too small":   {MaxPayloadBytes: MinPayloadBytes - 1},
		"payloads too large":   {MaxPayloadBytes: mostPayloadBytes + 1},
		"queue below one":      {RetryBytes: DefaultMaxPayloadBytes - 1},
		"an age in the future": {RetryAge: -time.Second},
		"no time to answer":    {Timeout: -time.Second},
	} {
		if f, err := New(cfg, (&scripted{}).describe()); err == nil {
			f.Close(t.Context())
			t.Errorf("%s: accepted", name)
		}
	}
}
