package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scrapeInterval is the interval of the scraper. A process that ends between two scrapes can lose the spans since the first.
const scrapeInterval = 5 * time.Second

// callsMetric is the counter that the Collector's connector and spanstatsd both have.
const callsMetric = "traces_span_metrics_calls_total"

// scraper is an output that does what a Prometheus does: it scrapes counters and adds up their increases, with each process
// as an instance of its own.
type scraper struct {
	url    string
	ledger *ledger
	end    chan struct{}
	done   sync.WaitGroup

	mu            sync.Mutex
	isUnreachable bool
	last          map[string]float64 // last value by series
}

func startScraper(url string, l *ledger) *scraper {
	s := &scraper{url: url, ledger: l, end: make(chan struct{}), last: map[string]float64{}}
	s.done.Go(func() {
		ticks := time.NewTicker(scrapeInterval)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				_ = s.scrape() // a failed scrape is a gap
			case <-s.end:
				return
			}
		}
	})
	return s
}

func (s *scraper) close() { close(s.end); s.done.Wait() }

func (s *scraper) setUnreachable(isUnreachable bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isUnreachable = isUnreachable
	return nil
}

func (s *scraper) restarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.last)
}

func (s *scraper) scrape() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isUnreachable {
		return nil
	}
	samples, err := readSamples(s.url, func(metric string) bool { return metric == callsMetric })
	if err != nil {
		return err
	}
	more := counts{}
	for _, sample := range samples {
		increase := sample.value - s.last[sample.series]
		if increase < 0 { // a reset
			increase = sample.value
		}
		s.last[sample.series] = sample.value
		more[spanName{sample.label("service_name"), sample.label("span_name")}] += increase
	}
	s.ledger.add(more)
	return nil
}

// sample is a sample in the Prometheus text format.
type sample struct {
	series string // with its labels
	value  float64
}

// label returns the value of a label. The judge's own names need no escapes.
func (s sample) label(name string) string {
	_, rest, _ := strings.Cut(s.series, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func (s sample) metric() string {
	metric, _, _ := strings.Cut(s.series, "{")
	return metric
}

var scrapeClient = &http.Client{Timeout: 10 * time.Second}

// readSamples returns the samples of some metrics. It returns an error if the response is incomplete.
func readSamples(url string, wanted func(metric string) bool) (samples []sample, err error) {
	response, err := scrapeClient.Get(url)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", url, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scrape %s: response %s", url, response.Status)
	}
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, fmt.Errorf("scrape %s: %w", url, err)
		}
		series, text, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if series == line {
			continue
		}
		one := sample{series: series}
		if !strings.Contains(line, "{") {
			one.series, text, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
		if !wanted(one.metric()) {
			continue
		}
		text, _, _ = strings.Cut(text, " ") // without a timestamp
		if one.value, err = strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("scrape %s: read %q: %w", url, line, err)
		}
		samples = append(samples, one)
	}
}
