package datadog

import (
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Header fields of tracers' requests and of the agent's responses.
const (
	headerLang          = "Datadog-Meta-Lang"
	headerLangVersion   = "Datadog-Meta-Lang-Version"
	headerInterpreter   = "Datadog-Meta-Lang-Interpreter"
	headerTracerVersion = "Datadog-Meta-Tracer-Version"
	headerContainer     = "Datadog-Container-Id"
	headerEntity        = "Datadog-Entity-Id"
	headerExternalEnv   = "Datadog-External-Env"
	headerProcessTags   = "X-Datadog-Process-Tags"
	headerComputedStats = "Datadog-Client-Computed-Stats"
	headerComputedTop   = "Datadog-Client-Computed-Top-Level"
	headerFetchSite     = "Sec-Fetch-Site"
	headerDroppedTraces = "Datadog-Client-Dropped-P0-Traces"
	headerDroppedSpans  = "Datadog-Client-Dropped-P0-Spans"
	headerTraceCount    = "X-Datadog-Trace-Count"
	headerObfuscation   = "Datadog-Obfuscation-Version"
	headerEncoding      = "Content-Encoding"
	headerAgentState    = "Datadog-Agent-State"
	headerAgentVersion  = "Datadog-Agent-Version"
	headerContentType   = "Content-Type"
	mediaMsgpack        = "application/msgpack"
	crossSite           = "cross-site"
)

// originOf returns the origin that a request's header names.
func originOf(h http.Header) span.Origin {
	return span.Origin{
		Lang: h.Get(headerLang), LangVersion: h.Get(headerLangVersion),
		LangInterpreter: h.Get(headerInterpreter), TracerVersion: h.Get(headerTracerVersion),
		ContainerID: h.Get(headerContainer), EntityID: h.Get(headerEntity),
		ExternalEnv: h.Get(headerExternalEnv), ProcessTags: h.Get(headerProcessTags),
	}
}

// setContainer sets the container of a request if its tracer has not set one: the agent can't ask the kernel
// for it, because this daemon is its peer.
func setContainer(container string, h http.Header) {
	if container != "" && h.Get(headerContainer) == "" && h.Get(headerEntity) == "" {
		h.Set(headerContainer, container)
	}
}

// containerOf returns the container of a request's connection, "" if unknown.
func containerOf(r *receiver.BufferedRequest) string {
	if r.Conn == nil {
		return ""
	}
	return r.Conn.Container
}

// add adds to a number in a header.
func add(h http.Header, name string, n int) {
	before, err := strconv.Atoi(h.Get(name))
	if err != nil {
		before = 0
	}
	h.Set(name, strconv.Itoa(max(0, before+n)))
}

// isMsgpack reports whether the agent reads a body with this content type as msgpack.
func isMsgpack(contentType string) bool {
	if contentType == mediaMsgpack { // as nearly all tracers write it
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == mediaMsgpack
}

// agentState is the state that is in the header of each of the agent's responses. Tracers fetch /info again
// when it changes, so the daemon's own responses have it as well.
type agentState struct {
	last atomic.Pointer[versionAndState]
}

type versionAndState struct{ version, state string }

// note remembers the state of a response, if it has one.
func (a *agentState) note(h http.Header) {
	now, last := versionAndState{h.Get(headerAgentVersion), h.Get(headerAgentState)}, a.last.Load()
	hasChanged := last == nil || *last != now
	if now != (versionAndState{}) && hasChanged {
		a.last.Store(&now)
	}
}

// write adds the state to one of the daemon's own responses, if it is known.
func (a *agentState) write(h http.Header) {
	if last := a.last.Load(); last != nil {
		h.Set(headerAgentVersion, last.version)
		h.Set(headerAgentState, last.state)
	}
}
