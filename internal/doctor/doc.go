// Package doctor says of a daemon what is right and what is not, and how to mend it.
//
// # What it looks at
//
// Look reads one status, which is all that the daemon says of itself, and returns findings in the order
// of a span's way: the program (program.go), doors and who spoke to them (doors.go), what SDKs say of
// their own spans (sdks.go), what others count too (twice.go), destinations and their clocks
// (destinations.go), the sums of the way (sums.go), and limits (limits.go). Arrived adds what a
// Prometheus has (arrived.go). It asks nobody itself.
//
// # What a finding is
//
// OK is right; Notice is no mistake, but may be the reason for numbers that surprise; Wrong is to be
// mended. All that is not OK has a mend.
//
// # Threading and bounds
//
// Everything here is a function of its arguments. There are as many findings as there are doors,
// destinations, and reasons of the status.
package doctor
