package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// stopAll stops all participants: first the hostile processes, then the well-behaved senders, then the
// daemons.
func (s *soak) stopAll() error {
	var errs []error
	for _, p := range s.hostile {
		r, err := p.finish()
		errs = append(errs, err)
		for name, n := range r.Attempts {
			s.attempts[name] += n
		}
		for _, response := range r.InvalidResponses {
			s.violation("%s", response)
		}
	}
	close(s.stop)
	senders := make(chan struct{})
	go func() {
		s.senders.Wait()
		close(senders)
	}()
	select {
	case <-senders:
	case <-time.After(2 * time.Minute):
		errs = append(errs, errors.New("well-behaved senders did not end within two minutes"))
	}
	flushed, ambiguous := uint64(0), uint64(0)
	for _, d := range s.daemons {
		if err := d.waitUntilEmpty(); err != nil {
			s.violation("%v", err)
			d.dump()
		}
		if err := d.stop(); err != nil {
			s.violation("%v", err)
		}
		flushed, ambiguous = flushed+d.flushed, ambiguous+d.ambiguous
	}
	s.ledger.change(func() {
		for _, fault := range s.ledger.faults {
			s.violation("incorrect data in the agent: %s", fault)
		}
		if s.ledger.counted < flushed || s.ledger.counted > flushed+ambiguous {
			s.violation("daemons report that the agent accepted %d spans, possibly %d more, but it has %d",
				flushed, ambiguous, s.ledger.counted)
		}
	})
	return errors.Join(errs...)
}

// waitUntilEmpty waits until a daemon without senders holds no data of any sender.
func (d *daemon) waitUntilEmpty() error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		s, err := d.status()
		if err != nil {
			return fmt.Errorf("%s: check whether it is empty: %w", d.name, err)
		}
		held := []int64{
			int64(s.Connections.Live), int64(s.Receivers["apm"].Connections.Live), int64(s.Receivers["otlp"].Connections.Live),
			s.Receivers["apm"].BufferedBytes, s.Receivers["otlp"].BufferedBytes,
		}
		if slices.Max(held) == 0 && s.Accounting.Balanced && s.Accounting.InTransit == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: a minute after all clients left, connections and buffered bytes are %v, accounting %+v",
				d.name, held, s.Accounting)
		}
	}
}

// summarize compares sent with arrived spans and returns the last line of the output.
func (s *soak) summarize(took time.Duration) (line string, passed bool) {
	v := s.ledger.compare(s.logf)
	attempts, starts, dropped, peak := uint64(0), 0, uint64(0), int64(0)
	for _, name := range slices.Sorted(maps.Keys(s.attempts)) {
		attempts += s.attempts[name]
		fmt.Fprintf(s.log, "%9d times: %s\n", s.attempts[name], name)
	}
	for _, d := range s.daemons {
		starts, dropped, peak = starts+d.starts, dropped+d.dropped, max(peak, d.peak)
	}
	tried := fmt.Sprintf("%d shapes tried %d times, %d kinds of faults, %d starts of %d daemons with %s",
		len(s.attempts), attempts, len(s.faultKinds), starts, len(s.daemons), memoryLimit)
	sent := fmt.Sprintf("at most %d MiB resident, %d hostile spans dropped, %d spans of %d well-behaved "+
		"senders in %d attempts", peak>>20, dropped, v.Sent, len(s.ledger.senders), v.Attempts)
	line = fmt.Sprintf("hostile, %s: %s, %s: lost %d, counted twice %d, over a limit %d",
		took.Round(time.Second), tried, sent, v.Lost, v.Twice, s.violations)
	return line, v.Lost+v.Twice+s.violations == 0 && v.Sent > 0
}
