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

// maxWait limits how long a well-behaved sender can go without a response while no fault is active.
const maxWait = 30 * time.Second

// watch inspects everything every second, until ctx is done.
func (s *soak) watch(ctx context.Context) {
	for second := 1; ctx.Err() == nil; second++ {
		pause(ctx, time.Second)
		for _, d := range s.daemons {
			d.inspect(s.violation)
		}
		s.mu.Lock()
		violations, since := s.violations, s.healthySince
		s.mu.Unlock()
		s.ledger.change(func() {
			spans, arrived := uint64(0), uint64(0)
			for name, a := range s.ledger.senders {
				spans, arrived = spans+a.sent.Spans, arrived+a.arrived.Spans+a.byAgent.Spans
				if !since.IsZero() && time.Since(since) > maxWait && time.Since(a.last) > maxWait {
					s.violation("%s: no request completed within %s without faults", name, maxWait)
					a.last = time.Now()
				}
			}
			if second%60 == 0 {
				s.logf("%d spans sent by well-behaved senders, %d of them arrived; over a limit %d", spans, arrived, violations)
			}
		})
	}
}

// balanceReads is the number of consecutive status reads in which the accounting must balance at least
// once. Spans in transit between two packages can make a single read off by their number.
const balanceReads = 500

// inspect reads a daemon's status and reports violated limits.
func (d *daemon) inspect(violation func(format string, args ...any)) {
	pid, isWatched := d.pid()
	if !isWatched {
		return // being restarted
	}
	var s *status.Status
	var err error
	for attempt := range balanceReads {
		if s, err = d.status(); err == nil && s.Accounting.Balanced {
			break
		}
		if now, isWatched := d.pid(); now != pid || !isWatched {
			return
		}
		time.Sleep(time.Duration(attempt%10) * time.Millisecond)
		if err != nil && attempt > 3 {
			violation("%s: read /status: %v", d.name, err)
			return
		}
	}
	if !s.Accounting.Balanced {
		violation("%s: accounting is not balanced in %d reads: %+v", d.name, balanceReads, s.Accounting)
	}
	abandoned := s.Accounting.Unsent - s.Accounting.UnsentBy["ambiguous"]
	if abandoned > d.abandoned {
		violation("%s: spans were abandoned: %v", d.name, s.Accounting.UnsentBy)
	}
	d.abandoned = abandoned
	for _, bounded := range bounds(s) {
		if bounded.now > bounded.limit {
			violation("%s: %s: %d, limit %d", d.name, bounded.name, bounded.now, bounded.limit)
		}
	}
	resident, err := residentBytes(pid)
	d.peak = max(d.peak, resident)
	if err == nil && resident > s.Memory.LimitBytes {
		violation("%s: resident memory %d MiB, limit %d MiB", d.name, resident>>20, s.Memory.LimitBytes>>20)
	}
}

type bound struct {
	name       string
	now, limit int64
}

// bounds returns the limits that a daemon's status contains.
func bounds(s *status.Status) (all []bound) {
	add := func(name string, now, limit int64) { all = append(all, bound{name, now, limit}) }
	addBounded := func(name string, b status.Bounded) { add(name, int64(b.Live), int64(b.Max)) }
	add("memory budget", s.Memory.TotalBytes, s.Memory.LimitBytes)
	addBounded("aggregates", s.Aggregates)
	addBounded("origins", s.Origins)
	addBounded("connections", status.Bounded{Live: s.Connections.Live, Max: s.Connections.Max})
	add("bytes in the retry queue", int64(s.Retry.Bytes), int64(s.Retry.MaxBytes))
	slots := int64(0)
	for _, drainer := range s.Drainers {
		add("slots in a ring", int64(drainer.Ring.Used), int64(drainer.Ring.Slots))
		slots += int64(drainer.Ring.Slots)
	}
	add("spans in transit", s.Accounting.InTransit, slots)
	if apm := s.Receivers["apm"]; apm != nil {
		addBounded("tracer connections", apm.Connections)
		add("buffered bytes of traces", apm.BufferedBytes, setting(s, "apm-max-body-bytes"))
	}
	if otlp := s.Receivers["otlp"]; otlp != nil {
		addBounded("SDK connections", otlp.Connections)
		add("buffered bytes of OTLP requests", otlp.BufferedBytes, setting(s, "otlp-max-body-bytes"))
	}
	return all
}

// setting returns the value in bytes of a flag of the daemon.
func setting(s *status.Status, flag string) int64 {
	for _, option := range s.Config {
		if option.Name != flag {
			continue
		}
		for unit, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1} {
			if n, err := strconv.ParseInt(strings.TrimSuffix(option.Value, unit), 10, 64); err == nil {
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
		return 0, errors.New("read resident memory: the process has ended")
	}
	kibibytes, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	return kibibytes << 10, err
}
