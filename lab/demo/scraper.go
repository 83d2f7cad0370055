package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// scraper is a Prometheus that scrapes the daemon as docs/prometheus.md describes.
type scraper struct {
	*exec.Cmd
	url string
	log bytes.Buffer
}

// configuration scrapes once per second, so that the user of the demo does not wait.
const configuration = `global:
  scrape_interval: 1s
scrape_configs:
  - job_name: spans
    metrics_path: ` + prometheus.Path + `
    static_configs: [{targets: [%q]}]
`

const (
	scrapeEvery = 500 * time.Millisecond // interval between reading totals
	startGrace  = 30 * time.Second       // for a busy machine
)

func startScraper(program, dir, target string) (*scraper, error) {
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configuration, target), 0o600); err != nil {
		return nil, fmt.Errorf("write its configuration: %w", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a port: %w", err)
	}
	address := free.Addr().String()
	free.Close()
	// With this feature a series counts from its start timestamp, not from the first scrape.
	s := &scraper{url: "http://" + address, Cmd: exec.Command(program, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+address,
		"--enable-feature=created-timestamp-zero-ingestion")}
	s.Stdout, s.Stderr, s.Dir = &s.log, &s.log, dir
	if err := s.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(startGrace); ; time.Sleep(scrapeEvery) {
		if _, err = get(s.url + "/-/ready"); err == nil {
			return s, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("not ready after %s: %w", startGrace, err), s.Close(),
				errors.New(s.log.String()))
		}
	}
}

// Close kills the Prometheus. Its data is removed with the demo's directory.
func (s *scraper) Close() error {
	if err := s.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop Prometheus: %w", err)
	}
	_ = s.Wait() // the error says that the process was killed
	return nil
}

// sample is one element of a query result.
type sample struct {
	labels map[string]string
	value  float64
}

// ask returns the result of a PromQL query.
func (s *scraper) ask(question string) (samples []sample, err error) {
	body, err := get(s.url + "/api/v1/query?" + url.Values{"query": {question}}.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", question, err)
	}
	for _, result := range answer.Data.Result {
		text, _ := result.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("read the answer to %s: %w", question, err)
		}
		samples = append(samples, sample{result.Metric, value})
	}
	return samples, nil
}

func (s *scraper) total() (total Sent, err error) {
	calls, err := s.ask(callsName)
	if err != nil {
		return total, err
	}
	for _, one := range calls {
		total.Spans += uint64(one.value)
		if one.labels["status_code"] == failedStatus {
			total.Errors += uint64(one.value)
		}
	}
	sums, err := s.ask(durationName + "_sum")
	for _, one := range sums {
		total.Duration += uint64(math.Round(one.value * 1e9))
	}
	return total, err
}

// queryRange covers two intervals of the daemon, because within a single one the totals increase
// only once.
const queryRange = "[20s]"

func (s *scraper) rates() (list []Rate, err error) {
	const routes = `{http_route!=""`
	list, place := nil, map[[2]string]int{}
	for _, one := range []struct {
		question string
		note     func(*Rate, float64)
	}{
		{
			"sum by (service_name, http_route) (rate(" + callsName + routes + "}" + queryRange + "))",
			func(r *Rate, v float64) { r.Rate = v },
		},
		{"sum by (service_name, http_route) (rate(" + callsName + routes + `, status_code="` + failedStatus +
			`"}` + queryRange + "))", func(r *Rate, v float64) { r.Errors = v }},
		{"histogram_quantile(0.95, sum by (service_name, http_route, le) (rate(" + durationName + "_bucket" +
			routes + "}" + queryRange + ")))", func(r *Rate, v float64) { r.P95 = milliseconds(v * 1e9) }},
	} {
		samples, err := s.ask(one.question)
		if err != nil {
			return nil, err
		}
		for _, sample := range samples {
			if sample.value == 0 || math.IsNaN(sample.value) { // no requests during that time
				continue
			}
			name := [2]string{sample.labels["service_name"], sample.labels["http_route"]}
			if _, is := place[name]; !is {
				place[name] = len(list)
				list = append(list, Rate{Service: name[0], Route: name[1]})
			}
			one.note(&list[place[name]], sample.value)
		}
	}
	return list, nil
}
