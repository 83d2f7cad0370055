package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// scraper acts as a Prometheus server. For each life it keeps the last complete scrape. The order is
// that of their starts, because two scrapes can overlap and the first can take longer.
type scraper struct {
	daemon  *daemon
	faults  *faults
	started atomic.Int64 // number of started scrapes

	mu    sync.Mutex
	lives map[int]scrape
}

// scrape is the result of one scrape.
type scrape struct {
	number  int64
	counted counts
}

// scrapedCalls is the prefix of the span counter's lines.
const scrapedCalls = "traces_span_metrics_calls_total{"

// run scrapes until ctx is done.
func (s *scraper) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.scrape(ctx)
		pause(ctx, 100*time.Millisecond+min(s.faults.draw().countDelay, maxUnread))
	}
}

// scrape scrapes the current daemon if possible. Each life has its own address, so the result belongs
// to a known life.
func (s *scraper) scrape(ctx context.Context) (isRead bool) {
	life, address := s.daemon.statusAddress()
	if address == "" {
		return false
	}
	number := s.started.Add(1)
	body, err := s.read(ctx, "http://"+address+"/metrics/spans")
	if err != nil {
		return false // that life has ended, so the scrape is invalid
	}
	counted := counts{}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if labels, ok := strings.CutPrefix(lines.Text(), scrapedCalls); ok {
			value, _ := strconv.ParseFloat(labels[strings.LastIndexByte(labels, ' ')+1:], 64)
			counted[slot{label(labels, "service_name"), label(labels, "span_name")}] += uint64(value)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lives[life].number < number {
		s.lives[life] = scrape{number, counted}
	}
	return true
}

// read reads a response completely, sometimes with a delay.
func (s *scraper) read(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scrape: %s", response.Status)
	}
	s.faults.notifyArrival()
	time.Sleep(min(s.faults.draw().responseDelay, maxUnread))
	return io.ReadAll(response.Body)
}

// maxUnread limits how long a scrape response stays unread. A daemon assumes that a response was read
// one second after it was written.
const maxUnread = 300 * time.Millisecond

// label returns the value of a label that contains no escapes.
func label(labels, name string) string {
	_, value, _ := strings.Cut(labels, name+`="`)
	value, _, _ = strings.Cut(value, `"`)
	return value
}

func (s *scraper) flags() []string { return []string{"--prometheus", "--prometheus-histograms=native"} }

// settle scrapes once more.
func (s *scraper) settle(ctx context.Context) error {
	for ctx.Err() == nil {
		if s.scrape(ctx) {
			return nil
		}
		pause(ctx, 10*time.Millisecond)
	}
	return errors.New("scrape the last daemon: no scrape succeeded")
}

func (s *scraper) count() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := counts{}
	for _, last := range s.lives {
		for name, spans := range last.counted {
			all[name] += spans
		}
	}
	return all
}

func (s *scraper) close() {}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
