// Package sketch keeps distributions of durations, bin for bin those of the agent: the
// mapping from a duration to its bin, stores that count in pages out of one bounded memory,
// and the flat Sketch in which stores are added up and read. It knows nothing of spans,
// keys or cycles.
package sketch
