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

// scraper stands for a Prometheus. Of each life it has the last scrape that it has read to its end:
// of those that were, the one that was begun last, since the first of two may be read the slower.
type scraper struct {
	daemon *daemon
	moods  *moods
	begun  atomic.Int64 // scrapes

	mu    sync.Mutex
	lives map[int]scrape
}

// scrape is what one showed.
type scrape struct {
	number int64
	seen   counts
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

// scrape reads what the present daemon shows, if it can. Each life has an address of its own, so
// whose it is, is known.
func (s *scraper) scrape(ctx context.Context) (isRead bool) {
	life, page := s.daemon.page()
	if page == "" {
		return false
	}
	number := s.begun.Add(1)
	body, err := s.read(ctx, "http://"+page+"/metrics/spans")
	if err != nil {
		return false // that life has ended, and this scrape is none
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
	if s.lives[life].number < number {
		s.lives[life] = scrape{number, seen}
	}
	return true
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

// mostUnread is how long a scrape that was written whole is not read: a daemon takes it for read a
// second later.
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
	for ctx.Err() == nil {
		if s.scrape(ctx) {
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
	for _, last := range s.lives {
		for name, spans := range last.seen {
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
