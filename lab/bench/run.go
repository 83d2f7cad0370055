package bench

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// Run performs one measurement. It returns an error if there are no figures. Lost spans are not
// an error but part of the report.
func Run(ctx context.Context, config Config) (*Report, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	if workload.UsesNumbers(config.Workload) {
		config.Keys = Numbered
	}
	r := &run{config: config}
	if config.Workload == Traces {
		return r.runTraces(ctx)
	}
	return r.runSpans(ctx)
}

// drive runs the tracers' jobs and returns their combined result. It calls ready when they have
// connected; they start when ready returns. Failures after that are recorded in the report.
func (r *run) drive(ctx context.Context, jobs []job, ready func() error) (did result, err error) {
	var producers []*producer
	defer func() {
		for _, p := range producers {
			p.kill()
		}
	}()
	for _, j := range jobs {
		p, err := startProducer(&r.config, "tracer", &j)
		if err != nil {
			return did, err
		}
		producers = append(producers, p)
	}
	for _, p := range producers {
		if err := p.await(); err != nil {
			return did, err
		}
	}
	if err := ready(); err != nil {
		return did, err
	}
	for _, p := range producers {
		if err := p.begin(); err != nil {
			return did, err
		}
	}
	if err := r.watch(ctx, producers); err != nil {
		r.report.fault(err)
	}
	did = newResult()
	for _, p := range producers {
		did.merge(&p.result)
	}
	return did, nil
}

// runSpans drives the load and takes readings before it, after it was counted, and after it was
// exported.
func (r *run) runSpans(ctx context.Context) (report *Report, err error) {
	if r.target, err = startTarget(&r.config); err != nil {
		return nil, err
	}
	defer r.target.kill()
	r.report = r.newReport()
	var profiled <-chan error
	did, err := r.drive(ctx, r.config.jobs(r.target.socket), func() (err error) {
		r.before, err = r.read()
		profiled = r.profile(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := <-profiled; err != nil {
		r.report.fault(err)
	}
	r.report.addTracers(&did)
	if err := r.drain(did.Handed); err != nil {
		return nil, err
	}
	return r.report, nil
}

// drain waits until all spans are counted, requests a flush, stops the daemon, and records its
// costs. With a warm-up the costs end before that flush, because the measured time already
// contains its share of flushes.
func (r *run) drain(handed uint64) error {
	if err := r.target.awaitAccounting(r.before.accounting.Received + handed); err != nil {
		r.report.fault(err)
	}
	r.report.Seconds = time.Since(r.before.at).Seconds()
	drained, err := r.read()
	if err != nil {
		return err
	}
	after, err := r.flush()
	if err != nil {
		return err
	}
	last := after
	if r.config.WarmUp > 0 {
		last = drained
	}
	var cost costs
	cost.add(&r.warm, &last)
	return r.finish(&after, &cost)
}

// watch waits for the tracers, and prints progress lines in the meantime.
func (r *run) watch(ctx context.Context, producers []*producer) error {
	show := newProgress(r)
	defer show.end()
	running := len(producers)
	ended := make(chan error, running)
	for _, p := range producers {
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
			for _, p := range producers {
				p.end()
			}
		case <-warm:
			now, err := r.read()
			if err != nil {
				return err
			}
			r.warm = now
		case <-show.ticker.C:
			show.line()
		}
	}
	return failed
}

// flush requests a flush of the daemon, as a tracer would, and takes a reading afterwards. The
// daemon may delay it by up to a second if a regular flush is due.
func (r *run) flush() (reading, error) {
	started := time.Now()
	if err := r.askFlush(); err != nil {
		r.report.fault(err)
	}
	r.report.FlushAnswer = time.Since(started).Seconds()
	return r.read()
}

func (r *run) askFlush() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
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
