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

// source returns scraped totals: from a real Prometheus, or directly from the daemon's page.
type source interface {
	// total returns the sum of all series. TopLevel is 0, because the metrics do not
	// distinguish top-level spans.
	total() (Sent, error)
	// rates returns the recent requests per second and 95th percentile of each route.
	rates() ([]Rate, error)
	Close() error
}

// scrapedDestination scrapes the daemon's totals.
type scrapedDestination struct {
	dir  string
	take func(arrived any)

	source source
	cancel context.CancelFunc
	done   chan struct{} // closed when the watching goroutine has ended

	mutex   sync.Mutex
	seen    Sent // latest total
	problem string
}

const settleGrace = time.Minute // an interval, and the time that a busy machine needs to scrape

// bounds are those of the Collector's spanmetrics connector, in seconds.
var bounds = []float64{.002, .004, .006, .008, .01, .05, .1, .2, .4, .8, 1, 1.4, 2, 5, 10, 15}

func (d *scrapedDestination) choose(c *daemon.Config) error {
	dimensions, err := points.ParseDimensions(points.AllDimensions)
	c.Prometheus = prometheus.New(prometheus.Config{
		URL: prometheus.Path, Dialect: points.Spanmetrics, Dimensions: dimensions, Bounds: bounds,
		Graph: &points.ServiceGraph{}, MaxEdges: 50,
	})
	return err
}

// begin starts a Prometheus if one is installed, and otherwise reads the daemon's page itself.
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

// watch reports the rates whenever the totals have increased, which is once per interval.
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

// look reads the totals, and reports whether they have increased.
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

// note records an error, if it is the first.
func (d *scrapedDestination) note(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err != nil && d.problem == "" {
		d.problem = err.Error()
	}
}

// settle waits until everything is scraped, because the totals of the last interval cannot be
// scraped after the daemon has stopped.
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

// counted copies the top-level spans from sent, because the metrics do not distinguish them.
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
