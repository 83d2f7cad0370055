//go:build languages

package otel

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// values are the sum and the number of values of a series.
type values struct{ sum, count float64 }

// genAISeries matches a line of the exposition with the sum or the number of values of a series.
var genAISeries = regexp.MustCompile(`(?m)^(gen_ai_\w+)_(sum|count)\{(.*)\} (\S+)$`)

// scrapeGenAI returns the series of metrics about models, by metric and labels without the service.
func scrapeGenAI(t *testing.T, d *daemon) map[string]values {
	t.Helper()
	response, err := http.Get("http://" + d.http + "/metrics/spans")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]values{}
	for _, line := range genAISeries.FindAllStringSubmatch(string(text), -1) {
		labels := map[string]string{}
		for _, pair := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(line[3], -1) {
			labels[pair[1]] = pair[2]
		}
		delete(labels, "service_name")
		key := seriesKey(line[1], labels)
		series := all[key]
		number, err := strconv.ParseFloat(line[4], 64)
		if err != nil {
			t.Fatal(err)
		}
		if line[2] == "sum" {
			series.sum = number
		} else {
			series.count = number
		}
		all[key] = series
	}
	return all
}

// seriesKey returns the metric and the labels as one text. encoding/json sorts the labels.
func seriesKey(metric string, labels map[string]string) string {
	text, _ := json.Marshal(labels)
	return metric + string(text)
}

// TestTokens_EqualPython calls models with the published OpenAI instrumentation in front of a stand-in for the API. The
// daemon's series are those of the instrumentation's own metrics: the same labels, numbers of values and, to the token,
// sums.
func TestTokens_EqualPython(t *testing.T) {
	d := start(t, "--prometheus", "--measure", "gen_ai", "--flush-interval", "1s")
	app := exec.Command(sdks+"/models/bin/python", "apps/models.py")
	app.Env = append(os.Environ(), "OTEL_SERVICE_NAME=assistant", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+d.otlp)
	app.Stderr = os.Stderr
	output, err := app.Output()
	if err != nil {
		t.Fatal(err)
	}
	var points []struct {
		Metric     string
		Attributes map[string]string
		Sum, Count float64
	}
	if err := json.Unmarshal(output, &points); err != nil {
		t.Fatal(err)
	}
	want := map[string]values{}
	for _, p := range points {
		labels := map[string]string{}
		for name, value := range p.Attributes {
			labels[strings.ReplaceAll(name, ".", "_")] = value
		}
		metric := strings.ReplaceAll(p.Metric, ".", "_")
		if metric == "gen_ai_client_operation_duration" {
			metric += "_seconds"
			p.Sum = 0 // the instrumentation measures it a little later than the end of the span
		}
		want[seriesKey(metric, labels)] = values{p.Sum, p.Count}
	}
	if len(want) < 9 {
		t.Fatalf("the instrumentation has only the series %v", want)
	}
	var got map[string]values
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		got = scrapeGenAI(t, d)
		for key, series := range got {
			if strings.HasPrefix(key, "gen_ai_client_operation_duration") {
				got[key] = values{0, series.count}
			}
		}
		if maps.Equal(got, want) {
			return
		}
	}
	t.Errorf("the series are %v, want %v", got, want)
}
