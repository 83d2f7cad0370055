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

// originOf returns the origin of a request. It describes the process that has sent the request, as far as the header says.
func originOf(h http.Header) span.Origin {
	return span.Origin{
		Lang: h.Get(headerLang), LangVersion: h.Get(headerLangVersion),
		LangInterpreter: h.Get(headerInterpreter), TracerVersion: h.Get(headerTracerVersion),
		ContainerID: h.Get(headerContainer), EntityID: h.Get(headerEntity),
		ExternalEnv: h.Get(headerExternalEnv), ProcessTags: h.Get(headerProcessTags),
	}
}

// setContainer sets the container id in the header of a request, if it is known and the tracer has not identified its
// container. The agent can't ask the kernel for the tracer's container, because its peer is this daemon.
func setContainer(container string, h http.Header) {
	isIdentified := h.Get(headerContainer) != "" || h.Get(headerEntity) != ""
	if container != "" && !isIdentified {
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

// addToNumber adds n, which can be negative, to the number in a header field. It treats a missing or invalid number
// as 0. A negative sum becomes 0.
func addToNumber(h http.Header, field string, n int) {
	current, err := strconv.Atoi(h.Get(field))
	if err != nil {
		current = 0
	}
	sum := max(0, current+n)
	h.Set(field, strconv.Itoa(sum))
}

// isMsgpack reports whether a Content-Type means msgpack. It ignores parameters of the media type, like the agent.
func isMsgpack(contentType string) bool {
	if contentType == mediaMsgpack {
		return true // saves the parsing, because nearly all tracers send no parameters
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == mediaMsgpack
}

// agentState is the version and the state of the agent in the header of its last response. The daemon's own responses
// repeat them, since tracers fetch /info again when the state changes.
type agentState struct {
	latest atomic.Pointer[versionAndState] // nil before the first response
}

type versionAndState struct{ version, state string }

// update stores the agent's version and state from the header of a response. A header without both changes nothing.
func (a *agentState) update(h http.Header) {
	received := versionAndState{version: h.Get(headerAgentVersion), state: h.Get(headerAgentState)}
	if received == (versionAndState{}) {
		return
	}
	stored := a.latest.Load()
	hasChanged := stored == nil || *stored != received
	if hasChanged {
		a.latest.Store(&received)
	}
}

// writeTo sets the agent's version and state in the header of a response, if they are known.
func (a *agentState) writeTo(h http.Header) {
	stored := a.latest.Load()
	if stored == nil {
		return
	}
	h.Set(headerAgentVersion, stored.version)
	h.Set(headerAgentState, stored.state)
}
