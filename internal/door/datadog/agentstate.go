package datadog

import (
	"net/http"
	"sync/atomic"
)

// agentState is what the agent says of itself in every answer. Tracers fetch /info again
// when it changes, so our own answers say the same.
type agentState struct{ last atomic.Pointer[saidState] }

type saidState struct{ version, state string }

// note keeps what an answer of the agent says.
func (a *agentState) note(field func(name string) string) {
	now := saidState{field(headerAgentVersion), field(headerAgentState)}
	if before := a.last.Load(); now != (saidState{}) && (before == nil || *before != now) {
		a.last.Store(&now)
	}
}

// write adds it to an answer of ours, if the agent has answered yet.
func (a *agentState) write(h http.Header) {
	if said := a.last.Load(); said != nil {
		h.Set(headerAgentVersion, said.version)
		h.Set(headerAgentState, said.state)
	}
}
