package fleet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSizes measures the figures that docs/scaling.md uses for sizing: processor time per point and
// memory per stream for each tier, and bytes per point on the network.
func TestSizes(t *testing.T) {
	const pods, rounds = 1500, 8
	f := startTiers(t, 2, true)
	s := &sender{t: t, url: f.url, many: pods, now: newOracle(t), began: time.Now()}
	l, r := &load{oracle: newOracle(t)}, rand.New(rand.NewPCG(22, 4))
	send := func(times int) {
		for range times {
			l.round(t, r, s)
			s.deliver()
		}
		f.rest()
	}
	programs := []*process{f.loadBalancer, f.gateways[0].process, f.gateways[1].process, f.prometheus.process}
	empty := bills(programs)
	send(3) // until every stream exists
	begun := bills(programs)
	send(rounds)
	ended := bills(programs)
	streams := 2 * pods * len(shapes)
	for i, p := range programs {
		share := float64(streams)
		if i == 1 || i == 2 {
			share = float64(f.gateways[i-1].streamCount())
		}
		t.Logf("%-10s %7.2f µs a point, %6.2f KiB a stream, %4.0f MiB without any", p.name,
			float64((ended[i].cpu-begun[i].cpu).Nanoseconds())/1e3/rounds/share,
			(ended[i].memory-empty[i].memory)*1024/share, empty[i].memory)
	}
	t.Logf("%d streams, %.0f bytes a point from the sender", streams, float64(s.sent)/float64(s.points))
	if got := l.oracle.counted(t); len(got) != pods*len(shapes) {
		t.Errorf("%d series were measured", len(got))
	}
	f.settle()
	f.account(t, l.oracle.counted(t))
}

// TestSizes_BytesPerPoint measures the bytes per point that a daemon sends, for a pod with few spans per
// series and interval, and for a pod with many.
func TestSizes_BytesPerPoint(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		for _, spans := range []int{1, 10, 1000} {
			t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
			r := startReceiver(t)
			d := startDaemon(t, "node-1", 20, "--otlp-metrics-endpoint", r.url()+"/v1/metrics",
				"--flush-interval", "10s")
			random := rand.New(rand.NewPCG(22, 5))
			l := &load{oracle: newOracle(t)}
			for range spans {
				if l.round(t, random, d); l.err != nil {
					t.Fatal(l.err)
				}
			}
			d.hands(t)
			d.stop() // delivers everything
			if r.taken() != l.published {
				t.Errorf("%d of %d spans arrived", r.taken(), l.published)
			}
			t.Logf("%4d spans a series, compression %s: %4.0f bytes a point", spans, compression,
				float64(r.bytes)/float64(r.many))
		}
	}
}

func (p *tap) streamCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.answered)
}

// bill is the resource usage of a process so far.
type bill struct {
	cpu    time.Duration
	memory float64 // resident, in MiB
}

func bills(of []*process) (all []bill) {
	for _, p := range of {
		all = append(all, bill{p.cpu(), p.memory()})
	}
	return all
}

// cpu returns the processor time of all threads of the process.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	// The clock ID of another process in the kernel: the inverted process ID, shifted, and the clock
	// type CPUCLOCK_SCHED.
	clock := int32(^p.command.Process.Pid)<<3 | 2
	var at unix.Timespec
	if err := unix.ClockGettime(clock, &at); err != nil {
		p.t.Fatalf("read clock of %s: %v", p.name, err)
	}
	return time.Duration(at.Nano())
}

func (p *process) memory() float64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	rest, _, _ = strings.Cut(rest, "kB")
	kib, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return kib / 1024
}
