package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

// episode is one sequence of daemons with its clients, senders and destinations.
type episode struct {
	settings
	scenario
	random       *rand.Rand // draws the times of kills
	dir          string
	daemon       *daemon
	destinations map[string]destination
	faults       *faults
	kills        int
	lives        plan           // planned lives; empty means random kills
	startedLives int            // number of planned lives that have started
	ending       sync.WaitGroup // daemons that shut down next to their successors
	ends         map[string]int // number of lives per kind of end

	clients, sending, scraping sync.WaitGroup
	mu                         sync.Mutex
	accounts                   []*account
	requests                   map[string][]request // by receiver
	errs                       []error
}

func newEpisode(s settings, c scenario) (e *episode, err error) {
	e = &episode{
		settings: s, scenario: c, random: rand.New(rand.NewPCG(c.seed, 1)),
		destinations: map[string]destination{},
		faults:       newFaults(c), requests: map[string][]request{},
		ends: map[string]int{},
	}
	e.daemon = &daemon{
		name: fmt.Sprint("seed ", c.seed), program: s.program, selfKilling: s.selfKilling, receivers: c.receivers, log: s.log,
	}
	if s.isPlanned {
		e.lives = c.plan()
	}
	if len(s.onlyPlan) > 0 {
		e.lives = s.onlyPlan
	}
	if e.dir, err = os.MkdirTemp(s.dir, "e"); err != nil {
		return e, err
	}
	e.daemon.dir = e.dir
	if c.diskIsFull {
		if err := mountSmallDisk(e.dir); err != nil {
			return e, err
		}
	}
	if c.usesOOMKiller {
		if e.daemon.pod, err = newPod(); err != nil {
			return e, err
		}
	}
	if !slices.Contains(c.destinations, "agent") {
		e.daemon.flags = append(e.daemon.flags, "--agent-url=off")
	}
	for _, name := range c.destinations {
		d, err := newDestination(name, e)
		if err != nil {
			return e, err
		}
		e.destinations[name] = d
		e.daemon.flags = append(e.daemon.flags, d.flags()...)
	}
	return e, nil
}

// run kills daemons for some time and then shuts everything down.
func (e *episode) run(ctx, killing context.Context, mayKill func() bool) error {
	if err := e.startNext(); err != nil {
		return err
	}
	scraping, stopScraping := context.WithCancel(ctx)
	defer stopScraping()
	for _, d := range e.destinations {
		e.scraping.Go(func() { d.run(scraping) })
	}
	publishing, stopPublishing := context.WithCancel(ctx)
	defer stopPublishing()
	e.startClients(publishing)
	e.startSenders(publishing)
	during, cancel := context.WithTimeout(killing, e.episode)
	defer cancel()
	endLives := func() error { return e.killDaemons(during, mayKill) }
	if len(e.lives) > 0 {
		endLives = func() error { return e.runPlan(during) }
	}
	err := endLives()
	stopPublishing()
	e.clients.Wait()
	e.sending.Wait()
	if err != nil {
		return err
	}
	e.faults.suspend(true)
	err = e.waitUntilEmpty(ctx)
	stopScraping()
	e.scraping.Wait()
	return errors.Join(err, e.daemon.stop(), errors.Join(e.errs...))
}

// waitUntilEmpty waits until the last daemon holds no spans.
func (e *episode) waitUntilEmpty(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); ; pause(ctx, 20*time.Millisecond) {
		s, err := e.daemon.process.status()
		if err != nil {
			return fmt.Errorf("check whether the daemon is empty: %w", err)
		}
		held := s.Accounting.InTransit
		for _, d := range s.Destinations {
			held += int64(d.Accounting.Pending)
		}
		if held == 0 && s.Accounting.Balanced {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("the daemon still holds spans a minute after all clients left: accounting %+v", s.Accounting)
		}
	}
	for _, d := range e.destinations {
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	return e.compareMetrics(ctx)
}

// compareMetrics compares the metrics of the last daemon with the same values in its log, which can be
// read a little later.
func (e *episode) compareMetrics(ctx context.Context) (err error) {
	for range 100 {
		if err = e.compareOnce(); err == nil {
			return nil
		}
		pause(ctx, 20*time.Millisecond)
	}
	return err
}

func (e *episode) compareOnce() error {
	metrics, err := e.daemon.metrics("spanstatsd_spans_lost_to_crashes_total")
	if err != nil {
		return err
	}
	life, _ := e.daemon.statusAddress()
	for _, receiver := range e.receivers {
		logged := e.daemon.reportedLosses(life, receiver)
		for reason, spans := range map[string]uint64{"lost": logged.lost, "ambiguous": logged.ambiguous} {
			if n := metrics[fmt.Sprintf("{reason=%q,receiver=%q}", reason, receiver)]; n != spans {
				return fmt.Errorf("receiver %s: the log reports %d spans as %s, the metric %d", receiver, spans,
					reason, n)
			}
		}
	}
	return nil
}

// compare compares the accounts of all participants.
func (e *episode) compare(printf printfFunc) (v verdict) {
	counted := map[string]counts{}
	for name, d := range e.destinations {
		counted[name] = d.count()
	}
	accounts := e.mergedAccounts()
	for _, a := range accounts {
		v.add(a.summarize(printf))
	}
	for name := range e.destinations {
		// Abandoned and collapsed spans are reported without the clients that sent them.
		abandoned := e.daemon.abandoned + counted[name].collapsed()
		for _, a := range accounts {
			result := a.compare(name, counted[name], e.disconnectedLoss(a), abandoned, printf)
			abandoned -= min(abandoned, result.abandoned)
			v.add(result)
		}
	}
	for _, receiver := range e.receivers {
		if e.diskIsFull || e.lives.damagesFile() { // some daemons could not report their losses
			result := compareReceiver(receiver, e.requests[receiver], nil, counted, func(string, ...any) {})
			v.Twice += result.Twice
			continue
		}
		result := compareReceiver(receiver, e.requests[receiver], e.daemon.losses, counted, printf)
		if result.Missing > result.Reported {
			result.Missing -= min(result.Missing-result.Reported, e.daemon.abandoned)
		}
		v.add(result)
	}
	if !v.passed() {
		printf("daemons that shut down gracefully report %d abandoned spans", e.daemon.abandoned)
	}
	return v
}

// mergedAccounts returns the accounts. Clients that disconnect share one account, because daemons
// report their losses as one number. If a recovery file is damaged, spans that a client reports as
// daemon_died may have been delivered.
func (e *episode) mergedAccounts() (all []*account) {
	var disconnected *account
	for _, a := range e.accounts {
		if e.diskIsFull || e.lives.damagesFile() {
			a.hasLowCapacity = true
			a.ambiguous, a.died = a.ambiguous+a.died, 0
		}
		// daemons report the losses of disconnected clients
		if e.diskIsFull || e.lives.removesFile() || e.lives.damagesFile() && a.name == disconnecting {
			a.unsettled += a.published.sum()
		}
		if a.name == disconnecting && disconnected != nil {
			disconnected.merge(a)
			continue
		}
		if a.name == disconnecting {
			disconnected = a
		}
		all = append(all, a)
	}
	return all
}

// disconnectedLoss returns the losses that daemons report for disconnected clients.
func (e *episode) disconnectedLoss(a *account) (all loss) {
	for _, l := range e.daemon.losses {
		if l.receiver == "socket" && a.name == disconnecting {
			all.lost += l.lost
			all.ambiguous += l.ambiguous
		}
	}
	return all
}

// close ends the remaining processes and destinations.
func (e *episode) close() {
	e.daemon.close()
	for _, d := range e.destinations {
		d.close()
	}
	if e.daemon.pod != nil {
		_ = e.daemon.pod.close() // the control group is empty
	}
	unmountDisk(e.dir)
	_ = os.RemoveAll(e.dir)
}
