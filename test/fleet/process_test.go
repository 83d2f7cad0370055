package fleet

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// program returns the path of a program built by `make test-fleet`.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("FLEET_DIR"), name)
	if _, err := os.Stat(path); err != nil || os.Getenv("FLEET_DIR") == "" {
		t.Fatalf("find %s: %v; run `make test-fleet`, which builds it and says where in FLEET_DIR", name, err)
	}
	return path
}

// process is a running program.
type process struct {
	t       *testing.T
	name    string
	command *exec.Cmd
	log     string // file with its output
	ended   chan struct{}
}

// start starts a program that runs until the end of the test at the latest.
func start(t *testing.T, name string, env []string, command ...string) *process {
	t.Helper()
	p := &process{
		t: t, name: name, command: exec.Command(command[0], command[1:]...),
		ended: make(chan struct{}),
	}
	p.log = filepath.Join(t.TempDir(), name+".log")
	said, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close() // inherited by the process
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = said, said
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // the result is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said last:\n%s", name, p.lastLines())
		}
	})
	return p
}

func (p *process) lastLines() []byte {
	const most = 4000
	said, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(said[max(0, len(said)-most):])
}

// listens waits until the process listens at the address.
func (p *process) listens(address string) {
	p.t.Helper()
	eventually.True(p.t, p.name+" listens", func() bool {
		select {
		case <-p.ended:
			p.t.Fatalf("%s ended by itself", p.name)
		default:
		}
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// stop shuts the process down gracefully, like in a rollout.
func (p *process) stop() {
	p.t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM) // if it has already ended, the check below fails
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.t.Fatalf("%s did not end within a minute of SIGTERM", p.name)
	}
	if code := p.command.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("%s ended with %d", p.name, code)
	}
}

// kill ends the process immediately, like the failure of a node.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// freePort returns a port that is unused on all loopback addresses of these tests.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// freeAddress returns an unused loopback address.
func freeAddress(t *testing.T) string { return net.JoinHostPort("127.0.0.1", freePort(t)) }
