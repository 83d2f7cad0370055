package bench

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/bench/measure"
	"github.com/spanstatsd/spanstatsd/internal/health"
)

// run is one measurement under way.
type run struct {
	config    Config
	target    *target
	producers []*producer
	before    reading // when the tracers may start
	warm      reading // when the costs begin to count
}

// reading is everything that can be read of a daemon at one moment.
type reading struct {
	at      time.Time
	cpu     measure.CPU
	metrics metrics
	books   health.Books
}

// Run measures once. An error says why there are no figures; that spans were
// lost is no error but a finding.
func Run(ctx context.Context, config Config) (*Report, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	r := &run{config: config}
	defer r.close()
	if config.Workload == Traces {
		return r.runTraces(ctx)
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r.measure(ctx)
}

// start has the daemon listening and every tracer connected.
func (r *run) start() (err error) {
	if r.config.Daemon != "" {
		r.target, err = aim(&r.config)
	} else {
		r.target, err = startTarget(&r.config)
	}
	if err != nil {
		return err
	}
	return r.startProducers(r.config.jobs(r.target.socket))
}

// startProducers has tracers connected that wait for their start.
func (r *run) startProducers(jobs []job) error {
	for _, j := range jobs {
		p, err := startProducer(&r.config, j)
		if err != nil {
			return err
		}
		r.producers = append(r.producers, p)
	}
	for _, p := range r.producers {
		if err := p.ready(); err != nil {
			return err
		}
	}
	return nil
}

// begin starts them.
func (r *run) begin() error {
	for _, p := range r.producers {
		if err := p.begin(); err != nil {
			return err
		}
	}
	return nil
}

// endProducers ends every tracer.
func (r *run) endProducers() {
	for _, p := range r.producers {
		p.kill()
	}
	r.producers = nil
}

// close ends every process that was started.
func (r *run) close() {
	r.endProducers()
	if r.target != nil {
		r.target.kill()
	}
}

// read looks at the daemon.
func (r *run) read(ctx context.Context) (n reading, err error) {
	if n.metrics, err = scrape(ctx, r.target.http); err != nil {
		return n, err
	}
	if n.books, err = status(ctx, r.target.http); err != nil {
		return n, err
	}
	n.at = time.Now()
	n.cpu, err = measure.CPUOf(r.target.pid)
	return n, err
}

// measure drives the load and reads the figures before, after it was counted,
// and after it was reported.
func (r *run) measure(ctx context.Context) (report *Report, err error) {
	// What comes from here on is to be read even when a signal ends the load.
	asking := context.WithoutCancel(ctx)
	if r.before, err = r.read(asking); err != nil {
		return nil, err
	}
	report = r.newReport()
	if err := r.begin(); err != nil {
		return nil, err
	}
	profiled := r.profile(ctx)
	if err := r.watch(ctx, asking); err != nil {
		report.fault(err)
	}
	if err := <-profiled; err != nil {
		report.fault(err)
	}
	r.addTracers(report)
	if err := r.drain(asking, report); err != nil {
		return nil, err
	}
	if err := r.target.stop(); err != nil {
		report.fault(err)
	}
	r.addAgent(report)
	return report, nil
}

// drain waits until everything is counted, has it reported, and takes in what it
// cost. With a warm-up the costs end before that report: then they are those of
// a time that has its own share of reports.
func (r *run) drain(ctx context.Context, report *Report) error {
	if err := r.target.awaitBooks(ctx, r.before.books.Received+handed(r.producers)); err != nil {
		report.fault(err)
	}
	report.Seconds = time.Since(r.before.at).Seconds()
	drained, err := r.read(ctx)
	if err != nil {
		return err
	}
	if err := r.flush(ctx); err != nil {
		report.fault(err)
	}
	report.FlushAnswer = time.Since(drained.at).Seconds()
	after, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.addCounts(report, &after)
	var cost costs
	if cost.add(&r.warm, &after); r.config.WarmUp > 0 {
		cost = costs{}
		cost.add(&r.warm, &drained)
	}
	return r.addCosts(report, &cost)
}

// watch waits for the tracers, and says meanwhile how it goes.
func (r *run) watch(ctx, asking context.Context) error {
	show := newProgress(r)
	defer show.end(asking)
	running := len(r.producers)
	ended := make(chan error, running)
	for _, p := range r.producers {
		go func() { ended <- <-p.done }()
	}
	var warm <-chan time.Time
	if r.warm = r.before; r.config.WarmUp > 0 {
		warm = time.After(r.config.WarmUp)
	}
	interrupted := ctx.Done()
	var failed error
	for running > 0 {
		select {
		case err := <-ended:
			running--
			if failed == nil {
				failed = err
			}
		case <-interrupted:
			interrupted = nil
			for _, p := range r.producers {
				p.end()
			}
		case <-warm:
			now, err := r.read(asking)
			if err != nil {
				return err
			}
			r.warm = now
		case <-show.ticks():
			show.line(asking)
		}
	}
	return failed
}

// flushLimit is how long the last report may take.
const flushLimit = 30 * time.Second

// flush has the daemon report what it holds, as a tracer would ask for it. Where
// a report is due anyway it may wait a second for that one.
func (r *run) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	c, err := client.Open(client.Config{Socket: r.target.socket, Name: "spanstatsd-bench"})
	if err != nil {
		return err
	}
	if err := c.Flush(ctx); err != nil {
		return err
	}
	return c.Close(ctx)
}
