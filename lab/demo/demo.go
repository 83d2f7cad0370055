package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// Config holds the settings of a demo.
type Config struct {
	Destination string        // one of Destinations
	For         time.Duration // duration; 0 until the context is done
	Rate        int           // spans per second
	JSON        bool
	Version     string
	Out         io.Writer
	Log         *slog.Logger
}

// Outcome is the last object of a demo's output: the daemon's accounting, the totals that the
// tracers sent, and the totals that the destination counted.
type Outcome struct {
	status.Accounting
	Tracers     Sent     `json:"tracers"`
	Destination string   `json:"destination"`
	Agent       Sent     `json:"agent"` // counted by the destination, which need not be an agent
	Equal       bool     `json:"equal"`
	Faults      []string `json:"faults"`
}

// demo is one run.
type demo struct {
	config      Config
	destination destination
	daemon      *daemon.Daemon
	shop        *traffic

	arrivals chan any      // payloads accepted by the destination
	stopped  chan struct{} // closed when the daemon has delivered everything
	flushes  int
	faults   []string

	unwritten error // first error in writing a report
}

// Run runs the demo. Its error lists lost or wrongly counted spans.
func Run(ctx context.Context, config Config) error {
	dir, err := os.MkdirTemp("", "spanstatsd-demo")
	if err != nil {
		return fmt.Errorf("make directory for the sockets: %w", err)
	}
	defer os.RemoveAll(dir)
	d := &demo{config: config, arrivals: make(chan any), stopped: make(chan struct{}), faults: []string{}}
	if err := d.start(dir); err != nil {
		return err
	}
	defer d.destination.Close()
	if config.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, config.For)
		defer cancel()
	}
	if !config.JSON {
		fmt.Fprintf(config.Out, "A web shop of %d services hands over about %d spans a second.\n", services,
			config.Rate)
		fmt.Fprintf(config.Out, "Watch it at http://%s/. The first report comes within ten seconds.\n",
			d.daemon.HTTPAddr())
	}
	var showing sync.WaitGroup
	showing.Go(d.show)
	d.shop.run(ctx, config.Rate)
	return d.finish(&showing)
}

// start starts the destination, then the daemon, then the shop's tracers.
func (d *demo) start(dir string) (err error) {
	if d.destination, err = startDestination(d.config.Destination, dir, d.take); err != nil {
		return err
	}
	config := daemon.DefaultConfig()
	config.Version, config.Log, config.HTTPAddr = d.config.Version, d.config.Log, "127.0.0.1:0"
	config.Ingest.Socket.Path = filepath.Join(dir, "spans.sock")
	if err = d.destination.choose(&config); err == nil {
		d.daemon, err = daemon.New(config)
	}
	if err != nil {
		d.destination.Close()
		return err
	}
	d.daemon.Start()
	if err = d.destination.begin(d.daemon.HTTPAddr()); err == nil {
		d.shop, err = openShop(config.Ingest.Socket.Path)
	}
	if err != nil {
		d.daemon.Stop()
		d.destination.Close()
	}
	return err
}

// take is called with each payload that the destination accepts, before it responds.
func (d *demo) take(arrived any) {
	select {
	case d.arrivals <- arrived:
	case <-d.stopped:
	}
}

// quiet is the pause without a payload that ends a flush. The payloads of one flush, one per
// origin, follow one another without a pause.
const quiet = 200 * time.Millisecond

// show writes a report for each flush until the daemon has stopped.
func (d *demo) show() {
	arrived := d.destination.newReport()
	var over <-chan time.Time
	for {
		select {
		case one := <-d.arrivals:
			arrived.add(one)
			over = time.After(quiet)
		case <-over:
			d.write(arrived)
			arrived = d.destination.newReport()
		case <-d.stopped:
			d.write(arrived)
			return
		}
	}
}

// write writes the report on the payloads since the last report.
func (d *demo) write(arrived report) {
	shown, accounting, at := arrived.table(), d.daemon.Accounting(), time.Now()
	if len(shown.lines) == 0 {
		return
	}
	d.flushes++
	if d.config.JSON {
		d.encode(struct {
			Flush      int               `json:"flush"`
			At         time.Time         `json:"at"`
			Rows       any               `json:"rows"`
			Accounting status.Accounting `json:"accounting"`
		}{d.flushes, at, shown.rows, accounting})
		return
	}
	writeTable(d.config.Out, d.flushes, at, shown, accounting)
}

func (d *demo) encode(v any) {
	if err := json.NewEncoder(d.config.Out).Encode(v); err != nil && d.unwritten == nil {
		d.unwritten = fmt.Errorf("write report: %w", err)
	}
}

// closeGrace is how long the tracers may take to deliver their buffered spans.
const closeGrace = 5 * time.Second

// finish stops the tracers, then the daemon, and compares the daemon's accounting with the totals
// of tracers and destination.
func (d *demo) finish(showing *sync.WaitGroup) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	failed := d.shop.close(ctx)
	d.destination.settle(d.shop.sent)
	accounting := d.daemon.Stop()
	close(d.stopped)
	showing.Wait()
	if failed != nil {
		d.faults = append(d.faults, failed.Error())
	}
	outcome := d.outcome(accounting)
	if d.config.JSON {
		d.encode(outcome)
	} else {
		writeOutcome(d.config.Out, &outcome)
	}
	switch {
	case d.unwritten != nil:
		return d.unwritten
	case !outcome.holds():
		return errors.New("run demo: the figures above do not agree; that is a defect, please report it " +
			"with them")
	}
	return nil
}

func (d *demo) outcome(accounting status.Accounting) Outcome {
	counted, problems := d.destination.counted(d.shop.sent)
	o := Outcome{
		Accounting: accounting, Tracers: d.shop.sent, Destination: d.config.Destination, Agent: counted,
		Faults: append(d.faults, problems...),
	}
	o.Equal = o.Tracers == o.Agent && o.Flushed == o.Tracers.Spans
	return o
}

func (o *Outcome) holds() bool { return o.Balanced && o.Equal && len(o.Faults) == 0 }

func writeOutcome(w io.Writer, o *Outcome) {
	width := len(o.Destination + " accepted")
	fmt.Fprintf(w, "\n%-*s  %d spans, %d errors, %d top-level\n", width, "tracers sent", o.Tracers.Spans,
		o.Tracers.Errors, o.Tracers.TopLevel)
	fmt.Fprintf(w, "%s accepted  %d spans, %d errors, %d top-level\n", o.Destination, o.Agent.Spans,
		o.Agent.Errors, o.Agent.TopLevel)
	for _, fault := range o.Faults {
		fmt.Fprintf(w, "fault: %s\n", fault)
	}
	result := "every span is accounted for"
	if !o.holds() {
		result = "THE FIGURES DO NOT AGREE"
	}
	fmt.Fprintf(w, "%s\n", result)
}
