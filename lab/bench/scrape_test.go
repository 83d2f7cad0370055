package bench

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
)

const exposition = `# HELP x_total of it
x_total{reason="ring_full"} 3
x_total{reason="not_wanted"} 1e+06
y 0.25
z_bucket{le="0.5"} 2
z_bucket{le="0.25"} 1
z_bucket{le="+Inf"} 7
`

func TestScrape(t *testing.T) {
	response := exposition
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, response)
	}))
	defer server.Close()
	m, err := scrape(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.by("x_total"); !maps.Equal(got, map[string]uint64{"ring_full": 3, "not_wanted": 1e6}) ||
		m["y"] != 0.25 {
		t.Errorf("%v, %v", got, m["y"])
	}
	got := m.since(metrics{`z_bucket{le="0.5"}`: 1}).histogram("z")
	if want := []uint64{1, 0, 6}; !reflect.DeepEqual([]uint64{got[0].count, got[1].count, got[2].count},
		want) {
		t.Errorf("buckets %v, want counts %v", got, want)
	}
	response = "x many\n"
	if _, err := scrape(server.URL); err == nil {
		t.Error("a value that is no number was read")
	}
	if _, err := readAccounting(server.URL); err == nil {
		t.Error("a daemon that has no /status was believed")
	}
}
