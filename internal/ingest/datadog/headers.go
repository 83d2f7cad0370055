package datadog

import (
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Header fields of tracers' requests and of the agent's responses, with some of their values.
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

// setContainer sets the container id in the header of a request if the tracer has not set one. The agent itself would
// ask the kernel for the container of its peer, but its peer is this daemon.
func setContainer(container string, h http.Header) {
	if container != "" && h.Get(headerContainer) == "" && h.Get(headerEntity) == "" {
		h.Set(headerContainer, container)
	}
}

// containerOf returns the container id of a request's sender, or "" if it is unknown.
func containerOf(r *receiver.BufferedRequest) string {
	if r.Conn == nil {
		return ""
	}
	return r.Conn.Container
}

// add adds n to the number in a header field. The result is at least 0. A missing or invalid number counts as 0.
func add(h http.Header, name string, n int) {
	current, err := strconv.Atoi(h.Get(name))
	if err != nil {
		current = 0
	}
	h.Set(name, strconv.Itoa(max(0, current+n)))
}

// isMsgpack reports whether the agent reads a body with this content type as msgpack.
func isMsgpack(contentType string) bool {
	if contentType == mediaMsgpack { // nearly all tracers send no parameters
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == mediaMsgpack
}

// agentState is the last state in the header of the agent's responses. The daemon's own responses repeat it, since
// tracers fetch /info again when the state changes.
type agentState struct {
	last atomic.Pointer[versionAndState]
}

type versionAndState struct{ version, state string }

// note stores the state in the header of a response, if it has one.
func (a *agentState) note(h http.Header) {
	current, last := versionAndState{h.Get(headerAgentVersion), h.Get(headerAgentState)}, a.last.Load()
	hasChanged := last == nil || *last != current
	if current != (versionAndState{}) && hasChanged {
		a.last.Store(&current)
	}
}

// write sets the stored state in the header of a response, if there is one.
func (a *agentState) write(h http.Header) {
	if last := a.last.Load(); last != nil {
		h.Set(headerAgentVersion, last.version)
		h.Set(headerAgentState, last.state)
	}
}
