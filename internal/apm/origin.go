package apm

import (
	"net/http"

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

// Origin is who sent the last body, by what the payload says and by the request's
// headers, as the agent tells payloads of statistics apart. The base service,
// which goes by the trace, is each batch's own.
func (c *Counter) Origin(h http.Header) span.Origin {
	f := &c.payload.facts
	o := span.Origin{
		Env: c.own(f.env), Version: c.own(f.version), Host: c.own(f.host), GitCommitSHA: c.own(f.commit),
		Lang: h.Get(headerLang), LangVersion: h.Get(headerLangVersion), LangInterpreter: h.Get(headerInterpreter),
		TracerVersion: h.Get(headerTracerVersion), ContainerID: h.Get(headerContainer), EntityID: h.Get(headerEntity),
		ExternalEnv: h.Get(headerExternalEnv), ProcessTags: c.processTags(h),
	}
	if c.payload.format == FormatV07 || c.payload.format == FormatV1 {
		o.Lang = c.own(f.lang)
		if f.langVersion.n > 0 {
			o.LangVersion = c.own(f.langVersion)
		}
		if f.tracerVersion.n > 0 {
			o.TracerVersion = c.own(f.tracerVersion)
		}
		if f.container.n > 0 {
			o.ContainerID, o.EntityID = c.own(f.container), ""
		}
	}
	return o
}

// processTags are the payload's, else its first span's, else the header's.
func (c *Counter) processTags(h http.Header) string {
	p := &c.payload
	if p.facts.hasProcessTags {
		return c.own(p.facts.processTags)
	}
	if len(p.records) > 0 {
		for _, t := range p.tags[p.records[0].first:p.records[0].last] {
			if t.label == labelProcessTags && t.kind == isText {
				return c.own(t.text())
			}
		}
	}
	return h.Get(headerProcessTags)
}

// own is a copy of a string of the body.
func (c *Counter) own(t text) string { return string(c.text(t)) }
