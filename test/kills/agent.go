package main

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// agent is a fake agent that counts the payloads and traces it has read completely.
type agent struct {
	tally
	faults *faults
	*standin.Agent
}

func newAgent(f *faults) (_ *agent, err error) {
	a := &agent{faults: f}
	a.Agent, err = standin.Start(standin.Config{OnPayload: a.countPayload, OnTraces: a.countTraces})
	if err != nil {
		return nil, err
	}
	a.SetFault(func(r *http.Request) standin.Fault {
		if r.URL.Path != "/v0.6/stats" {
			return standin.Fault{}
		}
		f.notifyArrival()
		fault := f.draw()
		time.Sleep(fault.countDelay)
		if fault.rejects {
			return standin.Fault{Kind: standin.Answer, Status: http.StatusServiceUnavailable}
		}
		return standin.Fault{}
	})
	return a, nil
}

func (a *agent) countPayload(r standin.Received) {
	a.mu.Lock()
	r.Payload.Check(false, func(string, ...any) {}, func(g *payload.Group, _ ...*ddsketch.DDSketch) {
		a.add(slot{g.Service, g.Resource}, g.Hits)
	})
	a.mu.Unlock()
	a.faults.notifyArrival()
	time.Sleep(a.faults.draw().responseDelay)
}

// countTraces counts the spans of a request that the daemon has not counted, like the real agent.
func (a *agent) countTraces(t standin.Traces) {
	fields := strings.SplitN(t.Header.Get(slotHeader), " ", 3)
	if t.IsCounted || len(fields) < 3 {
		return
	}
	spans, _ := strconv.ParseUint(fields[0], 10, 64) // written by this program, so always valid
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(slot{fields[1], fields[2]}, spans)
}

func (a *agent) flags() []string              { return []string{"--agent-url=" + a.URL()} }
func (a *agent) run(context.Context)          {}
func (a *agent) settle(context.Context) error { return nil }
func (a *agent) close()                       { _ = a.Close() }

func (a *agent) count() counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.counted)
}
