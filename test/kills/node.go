package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
)

// maxNodeRate is the maximum number of spans per second of the Node.js client, which leaves time to the others.
const maxNodeRate = 5000

var errNoNode = errors.New("bin/node-client is missing; run make test-node-client")

// nodeCommand returns the command of a program that publishes with the Node.js client.
func nodeCommand() ([]string, error) {
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Dir(here)
	library := filepath.Join(dir, "../../bin/node-client/applications/node_modules/@spanstatsd/opentelemetry")
	if exec.Command("node", "-e", "require(process.argv[1])", library).Run() != nil {
		return nil, errNoNode
	}
	return []string{"node", filepath.Join(dir, "node/publisher.cjs"), library}, nil
}

// publishNode publishes with the Node.js client, in a separate process.
func (e *episode) publishNode(ctx context.Context, a *account, rate int) error {
	return e.publishProcess(ctx, a, min(rate, maxNodeRate), e.node...)
}
