package standin

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestTraces: traces are counted according to the headers of their requests.
func TestTraces(t *testing.T) {
	var seen []bool
	a := startAgent(t, Config{OnTraces: func(r Traces) { seen = append(seen, r.IsCounted) }})
	for _, r := range []struct {
		method, path, mark, traces, body string
		status                           int
	}{
		{"PUT", "/v0.3/traces", "", "1", "abc", 200},
		{"POST", "/v0.4/traces", "", "2", "abcd", 200},
		{"POST", "/v0.5/traces", "false", "3", "", 200},
		{"POST", "/v0.7/traces", "yes", "4", "ab", 200},
		{"POST", "/v1.0/traces", "true", "5", "abc", 200},
		{"GET", "/v0.4/traces", "", "6", "", 405},
		{"POST", "/v0.4/traces", "", "7", strings.Repeat("x", maxRequestBytes+1), 413},
		{"POST", "/v0.2/traces", "", "8", "", 404},
	} {
		request, err := http.NewRequest(r.method, a.URL()+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Datadog-Trace-Count", r.traces)
		request.Header.Set("Datadog-Client-Computed-Stats", r.mark)
		answer, err := client(a).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != r.status {
			t.Errorf("%s %s with %q traces was answered %s", r.method, r.path, r.traces, answer.Status)
		}
	}
	totals := a.Totals()
	if totals.Uncounted != (TraceTotals{3, 6, 7}) || totals.Counted != (TraceTotals{2, 9, 5}) {
		t.Errorf("%+v without the mark, %+v with it", totals.Uncounted, totals.Counted)
	}
	if want := []bool{false, false, false, true, true}; !slices.Equal(seen, want) {
		t.Errorf("requests counted by their client: %v, want %v", seen, want)
	}
	info := DefaultInfo()
	info.Endpoints = []string{"/info", "/v0.6/stats"}
	a.SetInfo(info)
	if answer, said, err := request(t, a, "/v0.4/traces", nil); err != nil || answer.StatusCode != 404 {
		t.Errorf("an agent without the endpoint answered %v, %s, %v", answer, said, err)
	}
}
