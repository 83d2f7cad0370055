package main

import (
	"net/http"
	"os"

	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// agent is a fake agent on a Unix socket that misbehaves in different ways, one after another.
// Statistics must not get lost in it, so its faults only make a daemon retry them. The same holds for
// traces that no daemon has counted.
type agent struct {
	*standin.Agent
	path string
}

func newAgent(path string, l *ledger) (*agent, error) {
	a, err := standin.Start(standin.Config{
		Network: "unix", Address: path, Weighted: true, OnPayload: l.recordPayload, OnTraces: l.recordTraces,
	})
	if err != nil {
		return nil, err
	}
	return &agent{a, path}, nil
}

// setFault starts a fault that lasts until the next call; nil ends the current fault.
func (a *agent) setFault(f *fault) error {
	if f == nil || f.kind != isUnreachable {
		if err := os.Rename(a.path+".moved", a.path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if f == nil {
		a.SetFault(nil)
		return nil
	}
	a.SetFault(func(r *http.Request) standin.Fault { return f.forAgent(r) })
	if f.kind == isUnreachable {
		return os.Rename(a.path, a.path+".moved")
	}
	return nil
}

// forAgent converts the fault to a fault of the fake agent.
func (f *fault) forAgent(r *http.Request) standin.Fault {
	hasTraces := r.URL.Path != "/v0.6/stats" && r.URL.Path != "/info"
	isCounted := r.Header.Get("Datadog-Client-Computed-Stats") != ""
	switch {
	case f.kind == hangs && hasTraces:
		return standin.Fault{Kind: standin.Hang}
	case f.kind == hangs:
		return standin.Fault{Kind: standin.HangUnread}
	case f.kind == acceptsAndCloses && hasTraces && isCounted:
		return standin.Fault{Kind: standin.CloseRead}
	case f.kind == closesUnread || f.kind == isUnreachable || f.kind == acceptsAndCloses:
		return standin.Fault{Kind: standin.CloseUnread}
	case f.raw != nil && hasTraces:
		return standin.Fault{Kind: standin.Raw, Raw: f.raw}
	case f.raw != nil:
		return standin.Fault{Kind: standin.Answer, Status: http.StatusServiceUnavailable}
	}
	return standin.Fault{Kind: standin.Answer, Status: f.status}
}
