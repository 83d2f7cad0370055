package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// end stops all participants: first the hostile processes, then the polite senders, then the daemons.
func (s *soak) end() error {
	var errs []error
	for _, c := range s.crowds {
		r, err := c.leave()
		errs = append(errs, err)
		for name, n := range r.Tried {
			s.tried[name] += n
		}
		for _, wrong := range r.Wrong {
			s.noticed("%s", wrong)
		}
	}
	close(s.stop)
	senders := make(chan struct{})
	go func() {
		s.polite.Wait()
		close(senders)
	}()
	select {
	case <-senders:
	case <-time.After(2 * time.Minute):
		errs = append(errs, errors.New("polite senders do not come to their end within two minutes"))
	}
	flushed, ambiguous := uint64(0), uint64(0)
	for _, d := range s.daemons {
		if err := d.isEmpty(); err != nil {
			s.noticed("%v", err)
			d.dump()
		}
		if err := d.stop(); err != nil {
			s.noticed("%v", err)
		}
		flushed, ambiguous = flushed+d.flushed, ambiguous+d.ambiguous
	}
	s.ledger.change(func() {
		for _, fault := range s.ledger.faults {
			s.noticed("the agent would show wrongly: %s", fault)
		}
		if s.ledger.counted < flushed || s.ledger.counted > flushed+ambiguous {
			s.noticed("daemons say that the agent took %d spans, and perhaps %d more, and it has %d", flushed,
				ambiguous, s.ledger.counted)
		}
	})
	return errors.Join(errs...)
}

// isEmpty waits until a daemon without senders holds no data of any sender.
func (d *daemon) isEmpty() error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		s, err := d.status()
		if err != nil {
			return fmt.Errorf("%s: look whether it is empty: %w", d.name, err)
		}
		held := []int64{
			int64(s.Connections.Live), int64(s.Receivers["apm"].Connections.Live), int64(s.Receivers["otlp"].Connections.Live),
			s.Receivers["apm"].BufferedBytes, s.Receivers["otlp"].BufferedBytes,
		}
		if slices.Max(held) == 0 && s.Accounting.Balanced && s.Accounting.InTransit == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: a minute after everybody left it holds connections and bytes %v, and "+
				"has the books %+v", d.name, held, s.Accounting)
		}
	}
}

// judge returns the last line of the output.
func (s *soak) judge(took time.Duration) (line string, isGood bool) {
	v := s.ledger.judge(s.note)
	attempts, starts, dropped, peak := uint64(0), 0, uint64(0), int64(0)
	for _, name := range slices.Sorted(maps.Keys(s.tried)) {
		attempts += s.tried[name]
		fmt.Fprintf(s.log, "%9d times: %s\n", s.tried[name], name)
	}
	for _, d := range s.daemons {
		starts, dropped, peak = starts+d.starts, dropped+d.dropped, max(peak, d.peak)
	}
	tried := fmt.Sprintf("%d shapes tried %d times, %d faults behind, %d starts of %d daemons of %s",
		len(s.tried), attempts, len(s.kinds), starts, len(s.daemons), memoryLimit)
	came := fmt.Sprintf("at most %d MiB resident, %d hostile spans dropped, %d spans of %d polite senders "+
		"in %d tries", peak>>20, dropped, v.Sent, len(s.ledger.senders), v.Tries)
	line = fmt.Sprintf("hostile, %s: %s, %s: lost %d, counted twice %d, past a limit %d",
		took.Round(time.Second), tried, came, v.Lost, v.Twice, s.past)
	return line, v.Lost+v.Twice+s.past == 0 && v.Sent > 0
}
