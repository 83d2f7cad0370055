// Package traces compares the daemon's reading of traces with the Datadog agent's own code, for the
// same bytes: the rules in client/rules for tracer authors, and the decoding and counting of traces in
// internal/rules/datadog and internal/rules/translate.
package traces
