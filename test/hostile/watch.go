package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// starved limits how long a polite sender can go without a response while no fault is active.
const starved = 30 * time.Second

// watch inspects everything every second, until ctx is done.
func (s *soak) watch(ctx context.Context) {
	for second := 1; ctx.Err() == nil; second++ {
		pause(ctx, time.Second)
		for _, d := range s.daemons {
			d.look(s.noticed)
		}
		s.mu.Lock()
		past, since := s.past, s.calm
		s.mu.Unlock()
		s.ledger.change(func() {
			spans, arrived := uint64(0), uint64(0)
			for name, a := range s.ledger.senders {
				spans, arrived = spans+a.handed.Spans, arrived+a.arrived.Spans+a.byAgent.Spans
				if !since.IsZero() && time.Since(since) > starved && time.Since(a.last) > starved {
					s.noticed("%s: no request had its end in %s of nobody misbehaving", name, starved)
					a.last = time.Now()
				}
			}
			if second%60 == 0 {
				s.note("%d polite spans, of which %d have arrived; past a limit %d", spans, arrived, past)
			}
		})
	}
}

// balances is the number of consecutive status reads in which the accounting must balance at least
// once. Spans in transit between two packages can make a single read off by their number.
const balances = 500

// look reads a daemon's status and reports exceeded limits.
func (d *daemon) look(past func(format string, args ...any)) {
	pid, isSeen := d.pid()
	if !isSeen {
		return // being restarted
	}
	var s *status.Status
	var err error
	for try := range balances {
		if s, err = d.status(); err == nil && s.Accounting.Balanced {
			break
		}
		if now, isSeen := d.pid(); now != pid || !isSeen {
			return
		}
		time.Sleep(time.Duration(try%10) * time.Millisecond)
		if err != nil && try > 3 {
			past("%s: /status is not answered: %v", d.name, err)
			return
		}
	}
	if !s.Accounting.Balanced {
		past("%s: books are not balanced in %d looks: %+v", d.name, balances, s.Accounting)
	}
	givenUp := s.Accounting.Unsent - s.Accounting.UnsentBy["ambiguous"]
	if givenUp > d.givenUp {
		past("%s: spans were given up: %v", d.name, s.Accounting.UnsentBy)
	}
	d.givenUp = givenUp
	for _, bounded := range bounds(s) {
		if bounded.now > bounded.most {
			past("%s: %s: %d, and %d at most", d.name, bounded.what, bounded.now, bounded.most)
		}
	}
	resident, err := residentBytes(pid)
	d.peak = max(d.peak, resident)
	if err == nil && resident > s.Memory.LimitBytes {
		past("%s: %d MiB are resident, and %d may be", d.name, resident>>20, s.Memory.LimitBytes>>20)
	}
}

type bound struct {
	what      string
	now, most int64
}

// bounds returns the limits that a daemon's status contains.
func bounds(s *status.Status) (all []bound) {
	add := func(what string, now, most int64) { all = append(all, bound{what, now, most}) }
	of := func(what string, b status.Bounded) { add(what, int64(b.Live), int64(b.Max)) }
	add("memory budget", s.Memory.TotalBytes, s.Memory.LimitBytes)
	of("aggregates", s.Aggregates)
	of("origins", s.Origins)
	of("connections", status.Bounded{Live: s.Connections.Live, Max: s.Connections.Max})
	add("payloads that wait", int64(s.Retry.Bytes), int64(s.Retry.MaxBytes))
	slots := int64(0)
	for _, drainer := range s.Drainers {
		add("slots of a ring", int64(drainer.Ring.Used), int64(drainer.Ring.Slots))
		slots += int64(drainer.Ring.Slots)
	}
	add("spans in transit", s.Accounting.InTransit, slots)
	if apm := s.Receivers["apm"]; apm != nil {
		of("connections of tracers", apm.Connections)
		add("bytes of traces", apm.BufferedBytes, setting(s, "apm-max-body-bytes"))
	}
	if otlp := s.Receivers["otlp"]; otlp != nil {
		of("connections of SDKs", otlp.Connections)
		add("bytes of OTLP", otlp.BufferedBytes, setting(s, "otlp-max-body-bytes"))
	}
	return all
}

// setting returns the value in bytes of a flag of the daemon.
func setting(s *status.Status, flag string) int64 {
	for _, one := range s.Config {
		if one.Name != flag {
			continue
		}
		for unit, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1} {
			if n, err := strconv.ParseInt(strings.TrimSuffix(one.Value, unit), 10, 64); err == nil {
				return n * bytes
			}
		}
	}
	return 0
}

// residentBytes returns the peak resident memory of a process.
func residentBytes(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
	if !found {
		return 0, errors.New("it has ended")
	}
	kibibytes, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	return kibibytes << 10, err
}
