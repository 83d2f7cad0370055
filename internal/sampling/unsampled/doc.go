// Package unsampled cuts traces that a tracer's sampling has thrown away out of a body of the
// agent's trace formats. Once they are counted nobody looks at them again, so they need not leave
// the pod; the agent is told how many they were, which its samplers want to know.
//
// A body is cut where it lies, and never becomes longer. Of a body of v1.0 the strings that a
// trace brought are sent ahead (v1.go), since what is left of the body may ask for them.
//
// # Bounds and threading
//
// Cut takes no memory but for the strings that are sent ahead, maxAhead bytes in the table's own
// room. The goroutine that has the table and its decoder calls it.
package unsampled
