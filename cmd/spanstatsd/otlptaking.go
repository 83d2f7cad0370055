package main

import (
	"github.com/spanstatsd/spanstatsd/internal/otlp"
	"github.com/spf13/pflag"
)

// takingOptions are the flags of what takes OTLP, as far as they have to be read. Those of
// what is sent by OTLP are otlpOptions.
type takingOptions struct {
	forward string
}

func (o *takingOptions) addFlags(f *pflag.FlagSet, c *otlp.Config) {
	f.StringVar(&c.Addr, "otlp-addr", "", "host:port, on loopback, that takes OTLP of SDKs as they are, HTTP and gRPC: the spans of their traces are counted (default: none)")
	f.StringVar(&c.Socket.Path, "otlp-socket", "", "the same as a Unix socket (default: none)")
	f.StringVar(&o.forward, "otlp-forward", "", "where that OTLP goes on to, traces, metrics and logs: http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path (default: traces end here)")
	f.DurationVar(&c.Buffer, "otlp-buffer", c.Buffer, "how long a request of OTLP waits here for that destination while it is away; 0 for not at all")
	f.IntVar(&c.MaxConnections, "otlp-max-connections", c.MaxConnections, "SDKs connected at once to --otlp-addr and --otlp-socket")
	f.IntVar(&c.MaxStreams, "otlp-max-streams", c.MaxStreams, "requests that one connection of HTTP/2, as of gRPC, may have under way")
	f.IntVar(&c.Counters, "otlp-counters", c.Counters, "requests with traces of OTLP that are counted at a time")
	sizeVar(f, &c.MaxBody, "otlp-max-body", "longest request of OTLP, as it comes and without its gzip")
	sizeVar(f, &c.MaxBodyBytes, "otlp-max-body-bytes", "the same for all requests at a time")
}

// complete turns them into the configuration.
func (o *takingOptions) complete(c *otlp.Config) error {
	if o.forward == "" || o.forward == off {
		return nil
	}
	err := readInto(&c.Forward, o.forward, otlp.ParseDestination)
	if err != nil {
		o.forward = "" // it may hold what nobody should see
	}
	return err
}
