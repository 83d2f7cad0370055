package demo

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// source is what says how much was scraped: a real Prometheus, or the page that it would scrape.
type source interface {
	// total is the sum of all series, with top-level spans of 0: nothing says which are.
	total() (Sent, error)
	// rates are requests a second by route, and their 95th percentile, lately.
	rates() ([]Rate, error)
	Close() error
}

// scrapedDestination has the daemon's totals scraped, and looks at them.
type scrapedDestination struct {
	dir  string
	take func(arrived any)

	source source
	cancel context.CancelFunc
	done   chan struct{} // closed when nobody looks any more

	mutex   sync.Mutex
	seen    Sent // the newest total
	problem string
}

const settleGrace = time.Minute // an interval, and what a busy machine takes to scrape

// bounds are those of the Collector's connector, in seconds.
var bounds = []float64{.002, .004, .006, .008, .01, .05, .1, .2, .4, .8, 1, 1.4, 2, 5, 10, 15}

func (d *scrapedDestination) choose(c *daemon.Config) error {
	dimensions, err := points.ParseDimensions(points.AllDimensions)
	c.Prometheus = prometheus.New(prometheus.Config{
		URL: prometheus.Path, Dialect: points.Spanmetrics, Dimensions: dimensions, Bounds: bounds,
	})
	return err
}

// begin starts a Prometheus where there is one, and looks at the page itself where there is none.
func (d *scrapedDestination) begin(address string) (err error) {
	d.source = newScrapedPage("http://" + address + prometheus.Path)
	if program, missing := exec.LookPath("prometheus"); missing == nil {
		if d.source, err = startScraper(program, d.dir, address); err != nil {
			d.source = nil
			return fmt.Errorf("start Prometheus: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel, d.done = cancel, make(chan struct{})
	go d.watch(ctx)
	return nil
}

// watch reports the rates whenever the totals have grown, which they do once an interval.
func (d *scrapedDestination) watch(ctx context.Context) {
	defer close(d.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(scrapeEvery):
		}
		if isMore, err := d.look(); err != nil {
			d.note(err)
		} else if isMore {
			rates, err := d.source.rates()
			d.note(err)
			d.take(rates)
		}
	}
}

// look reads the totals, and reports whether they have grown.
func (d *scrapedDestination) look() (isMore bool, err error) {
	total, err := d.source.total()
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err != nil {
		return false, err
	}
	if total.Spans < d.seen.Spans {
		return false, fmt.Errorf("a total went back from %d spans to %d", d.seen.Spans, total.Spans)
	}
	isMore = total.Spans > d.seen.Spans
	d.seen = total
	return isMore, nil
}

// note keeps the first thing that went wrong.
func (d *scrapedDestination) note(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err != nil && d.problem == "" {
		d.problem = err.Error()
	}
}

// settle waits until everything was scraped: what the daemon's last interval counts nobody can
// scrape from a daemon that has stopped.
func (d *scrapedDestination) settle(sent Sent) {
	deadline := time.Now().Add(settleGrace)
	for counted, _ := d.counted(sent); counted.Spans < sent.Spans && time.Now().Before(deadline); {
		time.Sleep(scrapeEvery)
		counted, _ = d.counted(sent)
	}
	if counted, _ := d.counted(sent); counted.Spans < sent.Spans {
		d.note(fmt.Errorf("%d of %d spans were scraped within %s", counted.Spans, sent.Spans, settleGrace))
	}
	d.cancel()
	<-d.done
}

func (*scrapedDestination) newReport() report { return &ratesReport{} }

// counted has the top-level spans from what was sent: nothing says which are.
func (d *scrapedDestination) counted(sent Sent) (counted Sent, problems []string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.problem != "" {
		problems = []string{d.problem}
	}
	counted = d.seen
	counted.TopLevel = sent.TopLevel
	return counted, problems
}

func (d *scrapedDestination) Close() error {
	if d.source == nil {
		return nil
	}
	d.cancel()
	<-d.done
	return d.source.Close()
}
