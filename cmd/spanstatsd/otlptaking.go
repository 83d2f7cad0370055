package main

import (
	"github.com/spanstatsd/spanstatsd/internal/otlp"
	"github.com/spf13/pflag"
)

// addTakingFlags adds the flags of what takes OTLP. Those of what is sent by OTLP are
// otlpOptions.
func addTakingFlags(f *pflag.FlagSet, c *otlp.Config) {
	f.StringVar(&c.Addr, "otlp-addr", "", "host:port, on loopback, that takes OTLP of SDKs as they are, HTTP and gRPC: the spans of their traces are counted (default: none)")
	f.StringVar(&c.Socket.Path, "otlp-socket", "", "the same as a Unix socket (default: none)")
	f.IntVar(&c.MaxConnections, "otlp-max-connections", c.MaxConnections, "SDKs connected at once to --otlp-addr and --otlp-socket")
	f.IntVar(&c.MaxStreams, "otlp-max-streams", c.MaxStreams, "requests that one connection of HTTP/2, as of gRPC, may have under way")
	f.IntVar(&c.Counters, "otlp-counters", c.Counters, "requests with traces of OTLP that are counted at a time")
	sizeVar(f, &c.MaxBody, "otlp-max-body", "longest request of OTLP, as it comes and without its gzip")
	sizeVar(f, &c.MaxBodyBytes, "otlp-max-body-bytes", "the same for all requests at a time")
}
