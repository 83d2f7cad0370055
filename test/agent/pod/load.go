package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const connections = 32

// load sends requests at a fixed rate. It is used by a single goroutine.
type load struct {
	address string
	client  *http.Client
	number  int // number of the next request
	sent    int // requests sent in total
}

// window is the result of the requests in a period.
type window struct {
	requests  int
	failed    int
	lasted    time.Duration
	latencies []time.Duration // since the due time of each request, in ascending order
}

func newLoad(address string) *load {
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	return &load{address: address, client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// get sends one request.
func (l *load) get(path string) error {
	response, err := l.client.Get("http://" + l.address + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("response %s", response.Status)
	}
	return nil
}

// run sends requests for a while and waits for the responses. If the application is too slow, requests
// that have not been sent by the end of the longest allowed time are skipped.
func (l *load) run(path func(number int) string, rate int, lasts, most time.Duration) window {
	requests := int(lasts.Seconds() * float64(rate))
	latencies := make([]time.Duration, requests) // 0 for skipped requests
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	started := time.Now()
	for range connections {
		wg.Go(func() {
			for {
				number := int(next.Add(1) - 1)
				due := started.Add(time.Duration(number) * time.Second / time.Duration(rate))
				if number >= requests || time.Since(started) > most {
					return
				}
				time.Sleep(time.Until(due))
				if l.get(path(l.number+number)) != nil {
					failed.Add(1)
				}
				latencies[number] = time.Since(due)
			}
		})
	}
	wg.Wait()
	w := window{failed: int(failed.Load()), lasted: time.Since(started)}
	w.latencies = slices.DeleteFunc(latencies, func(took time.Duration) bool { return took == 0 })
	w.requests = len(w.latencies)
	l.number, l.sent = l.number+requests, l.sent+w.requests
	slices.Sort(w.latencies)
	return w
}

// add adds the result of later requests.
func (w *window) add(later window) {
	w.requests, w.failed, w.lasted = w.requests+later.requests, w.failed+later.failed, w.lasted+later.lasted
	w.latencies = append(w.latencies, later.latencies...)
	slices.Sort(w.latencies)
}

// share returns the latency quantile for the given share of the requests.
func (w window) share(of float64) time.Duration {
	if len(w.latencies) == 0 {
		return 0
	}
	return w.latencies[int(of*float64(len(w.latencies)-1))]
}
