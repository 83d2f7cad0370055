package stats

import (
	"testing"

	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
)

const bucketWidth = realagent.BucketWidth

// oracle is the real agent, with the test that it belongs to.
type oracle struct {
	*realagent.Agent
	t *testing.T
}

// startOracle runs the agent on a socket. edit can change its configuration.
func startOracle(t *testing.T, socket string, edit func(*config.AgentConfig)) *oracle {
	t.Helper()
	return &oracle{realagent.Start(t, socket, edit), t}
}
