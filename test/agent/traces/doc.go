// Package traces compares what the daemon makes of traces with what the Datadog
// agent's own code makes of the same bytes: the rules that client/rules offers to
// tracers' authors, and what decodes and counts traces in internal/rules/datadog and
// internal/rules/translate.
package traces
