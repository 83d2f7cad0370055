// Command record records the requests that `spanstatsd-lab bench --workload traces` sends. It runs
// small web applications with published tracers and their framework integrations, and keeps the largest
// trace request of each.
//
//	make record-traces
//
// A recording is a gzip file with the request as sent, without details of the recording machine.
// Recordings are replaced only on demand, because their IDs and times differ each time.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// recordings lists the recorded formats with the tracers that use them.
var recordings = []struct {
	format, endpoint string
	run              func(ctx context.Context, socket, python string) error
}{
	{"v0.4", "/v0.4/traces", func(ctx context.Context, socket,
		_ string,
	) error {
		return goShop(ctx, socket, "0.4")
	}},
	{"v0.5", "/v0.5/traces", pythonShop},
	{"v1.0", "/v1.0/traces", func(ctx context.Context, socket,
		_ string,
	) error {
		return goShop(ctx, socket, "1.0")
	}},
}

func main() {
	out := flag.String("out", "../../../lab/bench/testdata", "directory for the recordings")
	python := flag.String("python", "python3", "an interpreter that has ddtrace, flask and requests")
	flag.Parse()
	log.SetFlags(0)
	for _, r := range recordings {
		if err := record(r.endpoint, filepath.Join(*out, r.format+".http.gz"),
			func(ctx context.Context, socket string) error {
				return r.run(ctx, socket, *python)
			}); err != nil {
			log.Fatalf("record %s: %v", r.format, err)
		}
	}
}

// record runs an application against a local agent and writes the recorded request.
func record(endpoint, file string, run func(ctx context.Context, socket string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	agent, err := startAgent(endpoint)
	if err != nil {
		return err
	}
	defer agent.close()
	if err := run(ctx, agent.socket); err != nil {
		return err
	}
	return agent.write(file)
}

// pythonShop runs the application in shop_flask.py.
func pythonShop(ctx context.Context, socket, python string) error {
	app := exec.CommandContext(ctx, python, "record/shop_flask.py")
	app.Env = append(os.Environ(), settings(socket)...)
	app.Env = append(app.Env, "DD_TRACE_API_VERSION=v0.5", "DD_TRACE_WRITER_INTERVAL_SECONDS=30")
	if said, err := app.CombinedOutput(); err != nil {
		return fmt.Errorf("run application: %w: %s", err, said)
	}
	return nil
}

// settings are the settings of every tracer: only traces are sent, without details of this machine.
func settings(socket string) []string {
	return []string{
		"DD_TRACE_AGENT_URL=unix://" + socket, "DD_SERVICE=shop", "DD_ENV=prod", "DD_VERSION=1.4.2",
		"DD_TRACE_STATS_COMPUTATION_ENABLED=false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false",
		"DD_REMOTE_CONFIGURATION_ENABLED=false", "DD_TRACE_GIT_METADATA_ENABLED=false",
		"DD_RUNTIME_METRICS_ENABLED=false",
		"DD_CODE_ORIGIN_FOR_SPANS_ENABLED=false", "DD_TRACE_STARTUP_LOGS=false",
	}
}
