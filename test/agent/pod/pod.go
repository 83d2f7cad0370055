package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// pod is the set of processes of one side.
type pod struct {
	dir                string // directory of sockets and logs
	backend            *backend
	app, daemon, agent *process // daemon and agent can be nil
	address            string   // application's address
	collections        collectionLog
	otlp               string // the application's OTLP endpoint, if its tracer is OpenTelemetry's
}

// startPod starts the processes of a variant, the agent first. The application may not listen yet when startPod
// returns. Its port is the first free one from the given port on.
func startPod(p places, c cell, w variant, from int) (raised *pod, err error) {
	dir, err := os.MkdirTemp("", "pod")
	if err != nil {
		return nil, fmt.Errorf("make directory of sockets: %w", err)
	}
	all := &pod{dir: dir, collections: collectionLog(filepath.Join(dir, "collections"))}
	defer func() {
		if err != nil {
			all.clear()
		}
	}()
	if all.backend, err = startBackend(w.spans != 0); err != nil {
		return nil, err
	}
	if w.tracer == none {
		return all, all.startApp(p, c, w, "", from)
	}
	socket, err := all.startAgent(p, w, from+portsApart/3)
	if err != nil {
		return nil, err
	}
	if w.daemon != nil {
		if socket, err = all.startDaemon(p, socket, w, from+2*portsApart/3); err != nil {
			return nil, err
		}
	}
	return all, all.startApp(p, c, w, socket, from)
}

func (p *pod) startAgent(at places, w variant, from int) (socket string, err error) {
	socket = filepath.Join(p.dir, "agent.sock")
	command := []string{filepath.Join(at.built, "agent"), socket, p.backend.address}
	if w.tracer == opentelemetry {
		port, err := freePort(from)
		if err != nil {
			return "", err
		}
		p.otlp = fmt.Sprint("127.0.0.1:", port)
		command = append(command, p.otlp, w.keptByAgent())
	}
	if p.agent, err = start(p.dir, "agent", environment(), command...); err != nil {
		return "", err
	}
	return socket, await(p.agent, "unix", socket)
}

func (p *pod) startDaemon(at places, agent string, w variant, from int) (socket string, err error) {
	socket = filepath.Join(p.dir, "apm.sock")
	command := []string{
		filepath.Join(at.built, "spanstatsd"), "run", "--agent-url", "unix://" + agent, "--socket", p.spans(),
		"--http-addr", "127.0.0.1:0",
	}
	switch {
	case w.tracer == datadog:
		command = append(command, "--apm-socket", socket)
	case w.computes:
		socket = p.spans()
	default:
		port, err := freePort(from)
		if err != nil {
			return "", err
		}
		command = append(command, "--otlp-forward", "grpc://"+p.otlp)
		p.otlp, socket = fmt.Sprint("127.0.0.1:", port), p.spans()
		command = append(command, "--otlp-addr", p.otlp)
	}
	p.daemon, err = start(p.dir, "daemon", environment(), append(command, w.daemon...)...)
	if err != nil {
		return "", err
	}
	return socket, await(p.daemon, "unix", socket)
}

// spans returns the daemon's native socket, for applications that contain a client.
func (p *pod) spans() string { return filepath.Join(p.dir, "spans.sock") }

func (p *pod) startApp(at places, c cell, w variant, agent string, from int) (err error) {
	port, err := freePort(from)
	if err != nil {
		return err
	}
	p.address = fmt.Sprint("127.0.0.1:", port)
	env := environment()
	switch w.tracer {
	case datadog:
		env = slices.Concat(env, tracerSettings(agent, w.computes), c.app.tracer)
	case opentelemetry:
		env = slices.Concat(env, otelSettings(p, w))
	}
	p.app, err = start(p.dir, "application", env,
		c.app.command(at, launch{w, port, c.heap, string(p.collections)})...)
	return err
}

// Applications listen below the kernel's range for outgoing connections, with a separate range for each
// side and run, so that a free port is still free when the application has started.
const portsApart = 20

func firstPort(side int) int { return 20000 + portsApart*(10*(os.Getpid()%50)+side) }

func freePort(from int) (port int, err error) {
	for port = from; port < from+portsApart; port++ {
		listener, failed := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if failed == nil {
			return port, listener.Close()
		}
		err = failed
	}
	return 0, fmt.Errorf("find a port from %d on: %w", from, err)
}

// raising is the timeout for starting: five applications that start simultaneously on a busy machine
// are slow.
const raising = 5 * time.Minute

// await waits until a process listens.
func await(proc *process, network, address string) error {
	for deadline := time.Now().Add(raising); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err := proc.alive(); err != nil {
			return err
		}
		if conn, err := net.Dial(network, address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("start %s: process does not listen within %s", proc.name, raising)
}

// processes returns the running processes in shutdown order: each one before the process that receives
// its remaining data.
func (p *pod) processes() (all []*process) {
	for _, proc := range []*process{p.app, p.daemon, p.agent} {
		if proc != nil {
			all = append(all, proc)
		}
	}
	return all
}

// stop shuts all processes down gracefully, in that order.
func (p *pod) stop() error {
	var failed []error
	for _, proc := range p.processes() {
		failed = append(failed, proc.stop())
	}
	return errors.Join(failed...)
}

// clear kills the remaining processes and removes their files.
func (p *pod) clear() {
	for _, proc := range p.processes() {
		proc.kill()
	}
	if p.backend != nil {
		p.backend.stop()
	}
	_ = os.RemoveAll(p.dir)
}
