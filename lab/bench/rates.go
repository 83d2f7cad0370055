package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// At the rates of pods, the main cost is not the span but the wake-up of a goroutine or process
// for it. So two processes serve the same requests in parallel, and only one of them publishes.
// Other load on the machine affects both alike.

// Rates describes a measurement of the cost of publishing.
type Rates struct {
	Config
	Rounds int       // turns per rate; medians are printed
	Rates  []float64 // spans per second; 0: connected, but nothing is published
}

// DefaultRates returns the defaults of the command line. A turn lasts one interval of the
// daemon, including its export.
func DefaultRates() Rates {
	r := Rates{Config: DefaultConfig(), Rounds: 5, Rates: []float64{0, 100, 1000, 10_000, 100_000}}
	r.Tracer, r.Workload = Client, workload.Stable
	r.Batch, r.Connections, r.WarmUp = requestSpans, requestGoroutines, ratesWarmUp
	return r
}

const (
	requestSpans      = 10 // spans per request, published together
	requestGoroutines = 4  // goroutines that serve requests
	ratesWarmUp       = 2 * time.Second
)

// Check returns an error if the rates cannot be measured.
func (c *Rates) Check() error {
	if c.For <= 0 || c.Rounds < 1 || len(c.Rates) == 0 {
		return errors.New("parse --for, --rounds and --rates: none may be nothing or negative")
	}
	for _, rate := range c.Rates {
		if !(rate >= 0 && rate <= 1e6) {
			return fmt.Errorf("parse --rates: %v is not between 0 and a million", rate)
		}
	}
	return nil
}

// rateTurn is the cost per second of one turn.
type rateTurn struct {
	bare, publishing time.Duration // CPU time of the two processes
	daemon           time.Duration // CPU time of the daemon
}

func (t rateTurn) added() time.Duration { return t.publishing - t.bare }

// ratesRun is the state of a running measurement.
type ratesRun struct {
	*run
	did result // results of all publishing processes
}

// MeasureRates prints a table with one row per rate.
func MeasureRates(ctx context.Context, c Rates) (err error) {
	r := &ratesRun{run: &run{config: c.Config}, did: newResult()}
	if r.target, err = startTarget(&r.config); err != nil {
		return err
	}
	defer r.target.kill()
	if r.before, err = r.read(); err != nil {
		return err
	}
	r.report = r.newReport()
	turns := make([][]rateTurn, len(c.Rates))
	for range c.Rounds {
		for i, rate := range c.Rates {
			turn, err := r.round(ctx, rate)
			if err != nil {
				return fmt.Errorf("measure %v spans a second: %w", rate, err)
			}
			turns[i] = append(turns[i], turn)
		}
	}
	t := newTable(c.Out)
	for i, rate := range c.Rates {
		t.row(ratesFacts(rate, turns[i]))
	}
	return cmp.Or(t.flush(), r.end())
}

// round measures the cost per second of the two processes and of the daemon at a rate. It sends
// no requests to them during the turn: at these rates a request would cost more than the work
// to be measured.
func (r *ratesRun) round(ctx context.Context, rate float64) (rateTurn, error) {
	var traced [2]*producer
	for i, tracer := range []string{Bare, Client} {
		p, err := r.startTraced(rate, tracer)
		if p != nil {
			defer p.kill()
		}
		if err != nil {
			return rateTurn{}, err
		}
		traced[i] = p
	}
	spent, err := r.spend(ctx, traced[0].cmd.Process.Pid, traced[1].cmd.Process.Pid, r.target.pid)
	if err != nil {
		return rateTurn{}, err
	}
	for _, p := range traced {
		if rate == 0 {
			break
		}
		p.end()
		if err := <-p.done; err != nil {
			return rateTurn{}, err
		}
		r.did.merge(&p.result)
	}
	// The flush exports this turn's spans now instead of during the next turn.
	return rateTurn{bare: spent[0], publishing: spent[1], daemon: spent[2]}, r.askFlush()
}

// startTraced starts a process that serves requests until its input ends. At rate 0 the process
// connects and waits for the message to start.
func (r *ratesRun) startTraced(rate float64, tracer string) (*producer, error) {
	j := r.config.jobs(r.target.socket)[0]
	j.Tracer, j.OneClient, j.For = tracer, true, 0
	j.Rate = rate / float64(j.Connections)
	p, err := startProducer(&r.config, "tracer", &j)
	if err != nil {
		return nil, err
	}
	if err = p.await(); err == nil && rate > 0 {
		err = p.begin()
	}
	return p, err
}

// spend returns the CPU time per second that each of the processes used during one turn.
func (r *ratesRun) spend(ctx context.Context, pids ...int) ([]time.Duration, error) {
	if err := pass(ctx, r.config.WarmUp); err != nil {
		return nil, err
	}
	started := time.Now()
	before, err := cpuOf(pids)
	if err != nil {
		return nil, err
	}
	if err := pass(ctx, r.config.For); err != nil {
		return nil, err
	}
	seconds := time.Since(started).Seconds()
	spent, err := cpuOf(pids)
	for i := range spent {
		spent[i] = time.Duration(float64(spent[i]-before[i]) / seconds)
	}
	return spent, err
}

func cpuOf(pids []int) (spent []time.Duration, err error) {
	for _, pid := range pids {
		cpu, err := measure.CPUOf(pid)
		if err != nil {
			return nil, err
		}
		spent = append(spent, cpu.All)
	}
	return spent, nil
}

// pass waits until the duration is over or ctx is done.
func pass(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end requests a flush, stops the daemon, and returns an error unless both the daemon and the
// agent counted every published span.
func (r *ratesRun) end() error {
	r.report.addTracers(&r.did)
	if err := r.drain(r.did.Handed); err != nil {
		return err
	}
	if !r.report.Holds() || r.did.Handed != r.did.Attempted {
		return fmt.Errorf("the figures do not agree: %+v", *r.report)
	}
	return nil
}

// ratesFacts returns the figures of a rate.
func ratesFacts(rate float64, turns []rateTurn) []fact {
	median := func(figure func(rateTurn) time.Duration) float64 {
		return measure.Median(turns, func(t rateTurn) float64 { return float64(figure(t)) })
	}
	added := median(rateTurn.added)
	daemon := median(func(t rateTurn) time.Duration { return t.daemon })
	sent, ofProcess, ofDaemon := "idle", "", ""
	if rate > 0 {
		sent, ofProcess, ofDaemon = thousands(rate), integer(added/rate), integer(daemon/rate)
	}
	return []fact{
		{"spans a second", sent},
		{
			"process without publishing, ms",
			milliseconds(median(func(t rateTurn) time.Duration { return t.bare })),
		},
		{"and publishing", milliseconds(median(func(t rateTurn) time.Duration { return t.publishing }))},
		{"publishing adds", milliseconds(added)},
		{"ns a span", ofProcess},
		{"daemon, ms", milliseconds(daemon)},
		{"ns a span", ofDaemon},
	}
}

func milliseconds(ns float64) string { return fmt.Sprintf("%.2f", ns/1e6) }
