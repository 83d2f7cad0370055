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
	"time"
)

// scraper stands for a Prometheus. Of each life it has the last scrape that it has read to its end.
type scraper struct {
	daemon *daemon
	moods  *moods

	mu    sync.Mutex
	lives map[int]counts
}

// scrapedCalls is the metric that says how many spans there were.
const scrapedCalls = "traces_span_metrics_calls_total{"

// run scrapes until ctx ends.
func (s *scraper) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.scrape(ctx)
		pause(ctx, 100*time.Millisecond+min(s.moods.draw().before, mostUnread))
	}
}

// scrape reads what the present daemon shows. Each life has an address of its own, so whose it is, is known.
func (s *scraper) scrape(ctx context.Context) {
	life, page := s.daemon.page()
	if page == "" {
		return
	}
	body, err := s.read(ctx, "http://"+page+"/metrics/spans")
	if err != nil {
		return // that life has ended, and this scrape is none
	}
	seen := counts{}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		if labels, ok := strings.CutPrefix(lines.Text(), scrapedCalls); ok {
			value, _ := strconv.ParseFloat(labels[strings.LastIndexByte(labels, ' ')+1:], 64)
			seen[slot{label(labels, "service_name"), label(labels, "span_name")}] += uint64(value)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives[life] = seen
}

// read reads an answer to its end, now and then slowly.
func (s *scraper) read(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scrape: %s", answer.Status)
	}
	s.moods.notice()
	time.Sleep(min(s.moods.draw().after, mostUnread))
	return io.ReadAll(answer.Body)
}

// mostUnread is how long a scrape that was written whole is not read: a daemon takes it for read a second later.
const mostUnread = 300 * time.Millisecond

// label is the value of a label, which has nothing in it that is escaped.
func label(labels, name string) string {
	_, from, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(from, `"`)
	return value
}

func (s *scraper) flags() []string { return []string{"--prometheus", "--prometheus-histograms=native"} }

// settle scrapes once more.
func (s *scraper) settle(ctx context.Context) error {
	life, _ := s.daemon.page()
	s.mu.Lock()
	delete(s.lives, life)
	s.mu.Unlock()
	for ctx.Err() == nil {
		s.scrape(ctx)
		s.mu.Lock()
		isThere := s.lives[life] != nil
		s.mu.Unlock()
		if isThere {
			return nil
		}
		pause(ctx, 10*time.Millisecond)
	}
	return errors.New("the last daemon can't be scraped")
}

func (s *scraper) count() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := counts{}
	for _, seen := range s.lives {
		for name, spans := range seen {
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
