package main

import (
	"strings"
	"sync"

	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// agentOutput is an output that stands for a Datadog agent, to which spanstatsd sends its statistics.
type agentOutput struct {
	ledger  *ledger
	mu      sync.Mutex
	agent   *standin.Agent
	address string
}

func startAgentOutput(l *ledger) (*agentOutput, error) {
	o := &agentOutput{ledger: l, address: "127.0.0.1:0"}
	return o, o.setUnreachable(false)
}

func (o *agentOutput) url() string { return "http://" + o.address }

func (o *agentOutput) restarted() {}

func (o *agentOutput) close() { _ = o.setUnreachable(true) } // the agent may be closed already

func (o *agentOutput) setUnreachable(isUnreachable bool) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if isUnreachable {
		return o.agent.Close()
	}
	o.agent, err = standin.Start(standin.Config{Address: o.address, Weighted: true, OnPayload: o.count})
	if err == nil {
		o.address = strings.TrimPrefix(o.agent.URL(), "http://")
	}
	return err
}

func (o *agentOutput) count(received standin.Received) {
	hits := counts{}
	for _, bucket := range received.Payload.Stats {
		for _, group := range bucket.Stats {
			hits[spanName{group.Service, group.Resource}] += float64(group.Hits)
		}
	}
	o.ledger.add(hits)
}
