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
)

// prometheus is a real server with its OTLP receiver.
type prometheus struct {
	*process
	url  string
	data string // the directory of what it has
	args []string
}

func startPrometheus(t *testing.T, args ...string) *prometheus {
	t.Helper()
	p := &prometheus{url: "http://" + freeAddress(t), data: t.TempDir(), args: args}
	p.begin(t)
	return p
}

// begin starts it, again where it has run before.
func (p *prometheus) begin(t *testing.T) {
	t.Helper()
	config, err := filepath.Abs("config/prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	address := p.url[len("http://"):]
	p.process = start(t, "prometheus", nil, append([]string{
		program(t, "prometheus"), "--config.file", config, "--storage.tsdb.path", p.data,
		"--web.listen-address", address, "--web.enable-otlp-receiver", "--query.lookback-delta", "1h",
	}, p.args...)...)
	p.listens(address)
}

// sample is one element of an instant vector.
type sample struct {
	labels    map[string]string
	value     float64
	histogram *distribution // of a native histogram
}

// identity is the labels that tell the series of these tests apart, but for the gateway.
var identity = []string{"job", "host_name", "container_id", "span_name", "span_kind", "status_code"}

// separator is between the values of a series' name.
const separator = "|"

// series names a series by the labels that identify it.
func series(labels map[string]string) string {
	values := make([]string, len(identity))
	for i, name := range identity {
		values[i] = labels[name]
	}
	return strings.Join(values, separator)
}

// ask is the answer to a question in PromQL.
func (p *prometheus) ask(promql string) (samples []sample) {
	p.t.Helper()
	response, err := http.Get(p.url + "/api/v1/query?" + url.Values{"query": {promql}}.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric    map[string]string
				Value     [2]any
				Histogram []json.RawMessage
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("%s: %v, %s", promql, err, answer.Error)
	}
	for _, r := range answer.Data.Result {
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

// native reads a native histogram: its buckets say their bounds, from which follow scale and index.
func (p *prometheus) native(text []byte) *distribution {
	p.t.Helper()
	var h struct {
		Count, Sum string
		Buckets    [][4]any // which bounds are in it, the lower and the upper one, and how many
	}
	if err := json.Unmarshal(text, &h); err != nil {
		p.t.Fatal(err)
	}
	d := newDistribution()
	d.count, d.sum = uint64(p.number(h.Count)), p.number(h.Sum)
	for _, b := range h.Buckets {
		lower, upper, n := p.number(b[1]), p.number(b[2]), uint64(p.number(b[3]))
		if lower < 0 { // around 0
			d.zeros += n
			continue
		}
		d.scale = int(math.Round(-math.Log2(math.Log2(upper / lower))))
		d.buckets[int(math.Round(math.Log2(upper)*math.Exp2(float64(d.scale))))-1] = n
	}
	return d
}
