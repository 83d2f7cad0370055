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
	moods        *moods
	kills        int
	lives        plan           // planned lives; empty means random kills
	begun        int            // number of planned lives that have started
	ending       sync.WaitGroup // daemons that shut down next to their successors
	ends         map[string]int // number of lives per kind of end

	publishing, sending, scraping sync.WaitGroup
	mu                            sync.Mutex
	accounts                      []*account
	requests                      map[string][]request // by receiver
	errs                          []error
}

func newEpisode(s settings, c scenario) (e *episode, err error) {
	e = &episode{
		settings: s, scenario: c, random: rand.New(rand.NewPCG(c.seed, 1)),
		destinations: map[string]destination{},
		moods:        newMoods(c), requests: map[string][]request{},
		ends: map[string]int{},
	}
	e.daemon = &daemon{
		name: fmt.Sprint("seed ", c.seed), program: s.program, tagged: s.tagged, doors: c.doors, log: s.log,
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
	if c.isFull {
		if err := fillUp(e.dir); err != nil {
			return e, err
		}
	}
	if c.isStarved {
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
	scraping, unscraped := context.WithCancel(ctx)
	defer unscraped()
	for _, d := range e.destinations {
		e.scraping.Go(func() { d.run(scraping) })
	}
	busy, quiet := context.WithCancel(ctx)
	defer quiet()
	e.startClients(busy)
	e.startSenders(busy)
	during, over := context.WithTimeout(killing, e.episode)
	defer over()
	end := func() error { return e.trouble(during, mayKill) }
	if len(e.lives) > 0 {
		end = func() error { return e.live(during) }
	}
	err := end()
	quiet()
	e.publishing.Wait()
	e.sending.Wait()
	if err != nil {
		return err
	}
	e.moods.calm(true)
	err = e.end(ctx)
	unscraped()
	e.scraping.Wait()
	return errors.Join(err, e.daemon.stop(), errors.Join(e.errs...))
}

// end waits until the last daemon holds no spans.
func (e *episode) end(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); ; pause(ctx, 20*time.Millisecond) {
		s, err := e.daemon.process.status()
		if err != nil {
			return fmt.Errorf("look whether the daemon is empty: %w", err)
		}
		held := s.Accounting.InTransit
		for _, d := range s.Destinations {
			held += int64(d.Accounting.Pending)
		}
		if held == 0 && s.Accounting.Balanced {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("a minute after everybody left the daemon has the books %+v", s.Accounting)
		}
	}
	for _, d := range e.destinations {
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	return e.compareMetrics(ctx)
}

// compareMetrics compares the metrics of the last daemon with the same values in its log, which can be read
// a little later.
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
	shown, err := e.daemon.metrics("spanstatsd_spans_lost_to_crashes_total")
	if err != nil {
		return err
	}
	life, _ := e.daemon.page()
	for _, door := range e.doors {
		logged := e.daemon.reportedBy(life, door)
		for reason, spans := range map[string]uint64{"lost": logged.lost, "ambiguous": logged.ambiguous} {
			if n := shown[fmt.Sprintf("{reason=%q,receiver=%q}", reason, door)]; n != spans {
				return fmt.Errorf("the log says that %d were %s at %s, and the metric %d", spans,
					reason, door, n)
			}
		}
	}
	return nil
}

// judge compares the accounts of all participants.
func (e *episode) judge(say say) (v verdict) {
	counted := map[string]counts{}
	for name, d := range e.destinations {
		counted[name] = d.count()
	}
	books := e.books()
	for _, a := range books {
		v.add(a.own(say))
	}
	for name := range e.destinations {
		// Both are reported without the clients that sent the spans.
		gaveUp := e.daemon.gaveUp + counted[name].collapsed()
		for _, a := range books {
			one := a.judge(name, counted[name], e.lossOf(a), gaveUp, say)
			gaveUp -= min(gaveUp, one.gaveUp)
			v.add(one)
		}
	}
	for _, door := range e.doors {
		if e.isFull || e.lives.isDamaged() { // some daemons could not report their losses
			of := judgeDoor(door, e.requests[door], nil, counted, func(string, ...any) {})
			v.Twice += of.Twice
			continue
		}
		of := judgeDoor(door, e.requests[door], e.daemon.losses, counted, say)
		if of.Missing > of.Named {
			of.Missing -= min(of.Missing-of.Named, e.daemon.gaveUp)
		}
		v.add(of)
	}
	if !v.isGood() {
		say("daemons that ended in order say that they gave up %d", e.daemon.gaveUp)
	}
	return v
}

// books returns the accounts. Clients that leave share one account, because daemons report their losses
// as one number. If a recovery file is damaged, spans that a client reports as daemon_died may have
// been delivered.
func (e *episode) books() (all []*account) {
	var leave *account
	for _, a := range e.accounts {
		if e.isFull || e.lives.isDamaged() {
			a.isTight = true
			a.ambiguous, a.died = a.ambiguous+a.died, 0
		}
		// daemons report the losses of clients that have left
		if e.isFull || e.lives.isGone() || e.lives.isDamaged() && a.name == leaving {
			a.unsettled += a.published.sum()
		}
		if a.name == leaving && leave != nil {
			leave.merge(a)
			continue
		}
		if a.name == leaving {
			leave = a
		}
		all = append(all, a)
	}
	return all
}

// lossOf returns the losses that daemons report for clients that had left.
func (e *episode) lossOf(a *account) (all loss) {
	for _, l := range e.daemon.losses {
		if l.door == "socket" && a.name == leaving {
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
	release(e.dir)
	_ = os.RemoveAll(e.dir)
}
