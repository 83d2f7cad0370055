package datadog

import (
	"net/http/httptest"
	"testing"
)

// TestCountedHeader_Values checks, for each trace endpoint, that every value of the header except a false
// one marks a request as counted. The expected results are the agent's. The first of two values counts, and the
// case of the name does not matter.
func TestCountedHeader_Values(t *testing.T) {
	s := &Server{}
	s.policy.Store(policyOf(t))
	for path, format := range formats {
		for _, c := range []struct {
			name   string
			values []string
			says   bool
		}{
			{"Datadog-Client-Computed-Stats", nil, false},
			{"Datadog-Client-Computed-Stats", []string{""}, false},
			{"Datadog-Client-Computed-Stats", []string{"true"}, true},
			{"datadog-client-computed-stats", []string{"T"}, true},
			{"DATADOG-CLIENT-COMPUTED-STATS", []string{"1"}, true},
			{"Datadog-Client-Computed-Stats", []string{"yes"}, true},
			{"Datadog-Client-Computed-Stats", []string{"no"}, true},
			{"Datadog-Client-Computed-Stats", []string{"2"}, true},
			{"Datadog-Client-Computed-Stats", []string{"false"}, false},
			{"Datadog-Client-Computed-Stats", []string{"False"}, false},
			{"Datadog-Client-Computed-Stats", []string{"f"}, false},
			{"Datadog-Client-Computed-Stats", []string{"0"}, false},
			{"Datadog-Client-Computed-Stats", []string{"false", "true"}, false},
			{"Datadog-Client-Computed-Stats", []string{"true", "false"}, true},
			{"Datadog-Client-Computed-Top-Level", []string{"true"}, false},
			{"_dd.stats_computed", []string{"true"}, false}, // the marker of OTLP resources is not a header
		} {
			r := httptest.NewRequest("PUT", path, nil)
			r.Header.Set(headerContentType, mediaMsgpack)
			for _, value := range c.values {
				r.Header.Add(c.name, value)
			}
			if result, leaves := s.resultIfUncounted(format, r.Header); leaves != c.says || leaves &&
				result != ResultByTracer {
				t.Errorf("%s: %s: %q: left %v, %v", path, c.name, c.values, leaves, result)
			}
		}
	}
}
