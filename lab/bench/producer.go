package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// producer is a tracer process, as seen by bench.
type producer struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	done   chan error
	result result
}

// jobs divides the connections, the rate and the spans among the producers.
func (c *Config) jobs(socket string) []job {
	jobs := make([]job, c.Producers)
	all := uint64(c.Connections)
	first := 0
	for i := range jobs {
		j := job{Config: *c, First: first, All: c.Connections}
		j.Socket, j.Connections = socket, c.Connections/c.Producers
		j.Spans, j.Rate = (c.Spans+all-1)/all, c.Rate/float64(all)
		if i < c.Connections%c.Producers {
			j.Connections++
		}
		if c.Workload == workload.Burst && c.KeyCount == 0 {
			j.Burst = (workload.BurstSpans + all - 1) / all
		}
		first += j.Connections
		jobs[i] = j
	}
	return jobs
}

// startProducer starts this program as a tracer or relay process, sends the job, and waits
// until the process is ready.
func startProducer(c *Config, what string, job any) (*producer, error) {
	cmd, err := thisProgram("bench", what)
	if err != nil {
		return nil, err
	}
	p := &producer{cmd: cmd, done: make(chan error, 1)}
	cmd.Stderr = c.Log
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	p.out = json.NewDecoder(out)
	if err := measure.Start(cmd, c.CPUs); err != nil {
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	if err := json.NewEncoder(p.in).Encode(job); err != nil {
		p.kill()
		return nil, fmt.Errorf("send job to %s: %w", what, err)
	}
	return p, nil
}

// await reads the process's next message: that it is ready, or its result.
func (p *producer) await() error {
	if err := p.out.Decode(&p.result); err != nil {
		return fmt.Errorf("wait for tracer: %w", err)
	}
	if p.result.Error != "" {
		return fmt.Errorf("run tracer: %s", p.result.Error)
	}
	return nil
}

// begin starts the run in the process, and starts a goroutine that waits for its result.
func (p *producer) begin() error {
	if _, err := io.WriteString(p.in, "true\n"); err != nil {
		return fmt.Errorf("start tracer: %w", err)
	}
	go func() { p.done <- p.await() }()
	return nil
}

// end makes the process stop early.
func (p *producer) end() { p.in.Close() }

// kill kills the process and releases its resources.
func (p *producer) kill() {
	p.in.Close()
	timer := time.AfterFunc(time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait() // the exit code adds nothing to the result that was read
}
