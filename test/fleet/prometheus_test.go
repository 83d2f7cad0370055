package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// prometheus is a real Prometheus server.
type prometheus struct {
	*process
	url    string
	config string // configuration file
	data   string // data directory
	args   []string
}

// startPrometheus starts a server that accepts OTLP.
func startPrometheus(t *testing.T, args ...string) *prometheus {
	t.Helper()
	return startConfigured(t, "config/prometheus.yaml", append(args, "--web.enable-otlp-receiver")...)
}

func startConfigured(t *testing.T, config string, args ...string) *prometheus {
	t.Helper()
	p := &prometheus{url: "http://" + freeAddress(t), config: config, data: t.TempDir(), args: args}
	p.begin(t)
	return p
}

// begin starts the server for the first time or again.
func (p *prometheus) begin(t *testing.T) {
	t.Helper()
	config, err := filepath.Abs(p.config)
	if err != nil {
		t.Fatal(err)
	}
	address := p.url[len("http://"):]
	p.process = start(t, "prometheus", nil, append([]string{
		program(t, "prometheus"), "--config.file", config, "--storage.tsdb.path", p.data,
		"--web.listen-address", address, "--query.lookback-delta", "1h",
	}, p.args...)...)
	p.listens(address)
	eventually.True(t, "Prometheus is ready", func() bool {
		response, err := http.Get(p.url + "/-/ready")
		if err == nil {
			response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
}

// sample is an element of an instant vector.
type sample struct {
	labels    map[string]string
	value     float64
	histogram *distribution // set for native histograms
}

// identity lists the labels that identify the series of these tests, except for the gateway.
var identity = []string{"job", "host_name", "container_id", "span_name", "span_kind", "status_code"}

// separator separates the label values in the name of a series.
const separator = "|"

// series names a series by its identifying labels.
func series(labels map[string]string) string {
	values := make([]string, len(identity))
	for i, name := range identity {
		values[i] = labels[name]
	}
	return strings.Join(values, separator)
}

// get sends an API request, which must succeed.
func (p *prometheus) get(path string, parameters url.Values, into any) {
	p.t.Helper()
	response, err := http.Get(p.url + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("%s, %v: %v, %s", path, parameters, err, answer.Error)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		p.t.Fatalf("%s, %v: %v in %s", path, parameters, err, answer.Data)
	}
}

// matrix returns the values of each series in a range, oldest first.
func (p *prometheus) matrix(promql string) (series [][]float64) {
	p.t.Helper()
	var answer struct {
		Result []struct{ Values [][2]any }
	}
	p.get("query", url.Values{"query": {promql}}, &answer)
	for _, r := range answer.Result {
		values := make([]float64, len(r.Values))
		for i, value := range r.Values {
			values[i] = p.number(value[1])
		}
		series = append(series, values)
	}
	return series
}

// ask returns the result of a PromQL query.
func (p *prometheus) ask(promql string) []sample {
	p.t.Helper()
	return p.vector(url.Values{"query": {promql}})
}

// vector returns the result of a query with additional API parameters.
func (p *prometheus) vector(question url.Values) (samples []sample) {
	p.t.Helper()
	var answer struct {
		Result []struct {
			Metric    map[string]string
			Value     [2]any
			Histogram []json.RawMessage
		}
	}
	p.get("query", question, &answer)
	for _, r := range answer.Result {
		s := sample{labels: r.Metric}
		if len(r.Histogram) == 2 {
			s.histogram = p.native(r.Histogram[1])
		} else {
			s.value = p.number(r.Value[1])
		}
		samples = append(samples, s)
	}
	return samples
}

func (p *prometheus) number(text any) float64 {
	p.t.Helper()
	number, err := strconv.ParseFloat(fmt.Sprint(text), 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return number
}

// native decodes a native histogram. Scale and index follow from the bucket bounds.
func (p *prometheus) native(text []byte) *distribution {
	p.t.Helper()
	var h struct {
		Count, Sum string
		Buckets    [][4]any // boundary rule, lower bound, upper bound, count
	}
	if err := json.Unmarshal(text, &h); err != nil {
		p.t.Fatal(err)
	}
	d := newDistribution()
	d.count, d.sum = uint64(p.number(h.Count)), p.number(h.Sum)
	for _, b := range h.Buckets {
		lower, upper, n := p.number(b[1]), p.number(b[2]), uint64(p.number(b[3]))
		if lower < 0 { // zero bucket
			d.zeros += n
			continue
		}
		d.scale = int(math.Round(-math.Log2(math.Log2(upper / lower))))
		d.buckets[int(math.Round(math.Log2(upper)*math.Exp2(float64(d.scale))))-1] = n
	}
	return d
}
