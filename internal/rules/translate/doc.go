// Package translate makes of a request of OTLP what the Datadog agent's own OTLP ingest makes of it
// before it counts: traces of Datadog, with the second version of its names. The agent's rules
// then count those like traces of any tracer, so there is one code that counts as the agent does.
//
// # Translating
//
// A Translator fills a second table of spans from the decoded request. Of the tags of a span it
// makes those alone that a rule of statistics asks for. Texts stay places in the request's body;
// what the ingest makes itself stands in what was made for the second table. What a resource and a
// scope say is read once, into tags of which each label has one, so a request takes time in
// proportion to its length.
//
// A resource whose spans somebody has counted already (_dd.stats_computed), or its request where
// the resource says nothing, becomes no trace. A host that the resource does not say is left to
// the agent. Only the agent can say how a list reads as a tag: such a request is not translated.
//
// # Bounds
//
// The second table keeps the limits of the request's length, Bytes in all.
//
// # Threading
//
// One goroutine at a time uses a Translator. Its memory is used again for the next request, and
// nothing is allocated a span once it is warm.
package translate
