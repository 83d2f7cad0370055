package datadog

import (
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// The headers that say who sent a request, and what the agent is to do with it.
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

// header is the fields of a request, however they are kept.
type header interface {
	Get(name string) string
	Set(name, value string)
}

// originOf is what a request's headers say of who sent it.
func originOf(h header) span.Origin {
	return span.Origin{
		Lang: h.Get(headerLang), LangVersion: h.Get(headerLangVersion),
		LangInterpreter: h.Get(headerInterpreter), TracerVersion: h.Get(headerTracerVersion),
		ContainerID: h.Get(headerContainer), EntityID: h.Get(headerEntity),
		ExternalEnv: h.Get(headerExternalEnv), ProcessTags: h.Get(headerProcessTags),
	}
}
