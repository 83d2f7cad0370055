package commands

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/standin"
)

const (
	user     = 65534            // "nobody", used if root runs the test
	longest  = 10 * time.Minute // timeout of a command, which may compile on a busy machine
	soon     = time.Minute      // timeout of everything else
	page     = "http://127.0.0.1:9126"
	anAgent  = "127.0.0.1:8126"
	interval = 200 * time.Millisecond // polling interval
)

// reader executes one document.
type reader struct {
	t            *testing.T
	home         string
	started      []*process // all of them, including ended ones
	daemon       *process
	applications []*application
	expected     uint64 // spans that the daemon must have received
	server       *prometheus
	agent        *standin.Agent
}

func newReader(t *testing.T) *reader {
	t.Helper()
	home, err := os.MkdirTemp("", "home") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Mkdir(filepath.Join(home, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		for _, dir := range []string{home, filepath.Join(home, "tmp")} {
			if err := os.Chown(dir, user, user); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := &reader{t: t, home: home}
	t.Cleanup(func() { // after the shutdown, whatever its result
		for _, p := range r.started {
			_ = p.Cancel()
		}
	})
	t.Cleanup(r.stop)
	return r
}

// shell returns a command that a user types. Commands that compile run as the user of the test, whose
// caches they use. Programs with an absolute path run as that user, too, because others may not have
// access to them.
func (r *reader) shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = clone
	cmd.Env = []string{
		"PATH=" + filepath.Join(clone, "bin") + ":" + os.Getenv("PATH"), "HOME=" + r.home,
		"TMPDIR=" + filepath.Join(r.home, "tmp"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = soon
	switch isOurs := regexp.MustCompile(`^(exec )?(make |go |/)`).MatchString(command); {
	case isOurs:
		cmd.Env = append(cmd.Env, caches()...)
	case os.Getuid() == 0:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
	}
	return cmd
}

// caches returns the module and build caches of the go command.
var caches = sync.OnceValue(func() []string {
	names := []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY"}
	values, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		panic(err)
	}
	lines := strings.Split(string(values), "\n")
	for i, name := range names {
		names[i] = name + "=" + lines[i]
	}
	return names
})

// run runs a command and checks that it succeeds.
func (r *reader) run(command string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), longest)
	defer cancel()
	start := time.Now()
	if out, err := r.shell(ctx, command).CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v (%v)\n%s", command, err, context.Cause(ctx), out)
	}
	r.t.Logf("%s: %.1f s", command, time.Since(start).Seconds())
}

// process is a running command with its output so far.
type process struct {
	*exec.Cmd
	ended chan error

	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.buffer.Write(b)
}

func (p *process) output() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.buffer.String()
}

// begin starts a command that keeps running.
func (r *reader) begin(command string) *process {
	r.t.Helper()
	p := &process{
		Cmd:   r.shell(context.WithoutCancel(r.t.Context()), "exec "+command),
		ended: make(chan error, 1),
	}
	p.Stdout, p.Stderr = p, p
	if err := p.Start(); err != nil {
		r.t.Fatalf("%s: %v", command, err)
	}
	r.started = append(r.started, p)
	go func() { p.ended <- p.Wait() }()
	return p
}

// end sends a signal to the process, which must then exit successfully.
func (r *reader) end(p *process, signal syscall.Signal) {
	r.t.Helper()
	_ = p.Process.Signal(signal) // fails if the process has ended
	select {
	case err := <-p.ended:
		if err != nil {
			r.t.Errorf("%s after %s: %v\n%s", p.Args[2], signal, err, p.output())
		}
	case <-time.After(soon):
		_ = p.Cancel()
		r.t.Errorf("waited for %s in vain: the end of %s\n%s", soon, p.Args[2], p.output())
	}
}

// await polls until isThere is true, which a process is to bring about.
func (r *reader) await(p *process, what string, most time.Duration, isThere func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(most); !isThere(); time.Sleep(interval) {
		select {
		case err := <-p.ended:
			p.ended <- nil // for the later call of end
			r.t.Fatalf("waited for %s, and %s ended: %v\n%s", what, p.Args[2], err, p.output())
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s passed without %s, from %s\n%s", most, what, p.Args[2], p.output())
		}
	}
}

// serve stops the previous daemon, starts a daemon and waits until it is ready. A daemon with an
// APM receiver gets a fake agent as its upstream.
func (r *reader) serve(command string) {
	r.t.Helper()
	r.stop()
	if strings.Contains(command, "--apm-") {
		agent, err := standin.Start(standin.Config{Network: "tcp", Address: anAgent})
		if err != nil {
			r.t.Fatal(err)
		}
		r.agent = agent
	}
	r.daemon = r.begin(command)
	r.await(r.daemon, "the answer of "+page+"/readyz", soon, func() bool {
		answer, err := http.Get(page + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// look runs a command that shows a daemon's state until it is interrupted.
func (r *reader) look(command string) {
	r.t.Helper()
	p := r.begin(command)
	r.await(p, "its output", soon, func() bool { return strings.Contains(p.output(), "received") })
	r.end(p, syscall.SIGINT)
}

// stop ends the processes of a page: first the senders, then the daemons.
func (r *reader) stop() {
	r.t.Helper()
	for _, a := range r.applications {
		r.expected += a.end(r.t)
	}
	if r.server != nil && r.server.process != nil { // Prometheus may not be installed
		r.end(r.server.process, syscall.SIGTERM)
	}
	if r.daemon != nil {
		r.await(r.daemon, fmt.Sprintf("%d spans received", r.expected), soon, func() bool {
			return r.received() == r.expected
		})
		r.end(r.daemon, syscall.SIGTERM)
		if output := r.daemon.output(); !regexp.MustCompile(`balanced"?[=:]true`).MatchString(output) {
			r.t.Errorf("the accounting of %s is not balanced\n%s", r.daemon.Args[2], output)
		}
	}
	if r.agent != nil {
		if hits := r.agent.Totals().Hits; hits != r.expected {
			r.t.Errorf("the agent counted %d spans of %d", hits, r.expected)
		}
		r.agent.Close()
	}
	r.applications, r.server, r.daemon, r.agent, r.expected = nil, nil, nil, nil, 0
}
