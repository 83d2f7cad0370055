package main

// way is one to have a pod's statistics counted. Another one is another line here.
type way struct {
	name     string
	traced   bool
	computes bool     // the tracer counts itself
	daemon   []string // the daemon's flags, where there is one
}

// One trace of ten is kept in all of them.
const kept = 0.1

var ways = []way{
	{name: "no tracer"},
	{name: "tracer counts", traced: true, computes: true},
	{name: "agent counts", traced: true},
	{name: "spanstatsd counts", traced: true, daemon: []string{"--drop-unsampled=off"}},
	{name: "and drops unsampled", traced: true, daemon: []string{"--drop-unsampled=auto"}},
}
