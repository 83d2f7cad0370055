package main

import (
	"errors"
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/door/otlp"
	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spf13/pflag"
)

// takingOptions are the flags of what takes OTLP, as far as they have to be read. Those of
// what is sent by OTLP are otlpOptions.
type takingOptions struct {
	forward string
	ca      string // of the destination's certificate
	keep    string
	reading string
	mark    string
}

func (o *takingOptions) addFlags(f *pflag.FlagSet, c *otlp.Config) {
	f.StringVar(&c.Addr, "otlp-addr", "", "host:port, on loopback, that takes OTLP of SDKs as they are, HTTP and gRPC: the spans of their traces are counted (default: none)")
	f.StringVar(&c.Socket.Path, "otlp-socket", "", "the same as a Unix socket (default: none)")
	f.StringVar(&o.forward, "otlp-forward", "", "where that OTLP goes on to, traces, metrics and logs: http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path (default: traces end here)")
	f.StringVar(&o.ca, "otlp-forward-ca", "", "file with the authorities that the destination's certificate is checked by, in PEM (default: the system's)")
	f.StringVar(&o.keep, "otlp-keep", "", "which traces go on there, as a share of all, and what goes on beside it: 0.05, or 0.05,errors,slow:500ms; all are counted (default: all go on)")
	f.StringVar(&o.reading, "otlp-reading", string(c.Reading), "by whose rules spans of OTLP count and get their labels: otel, the semantic conventions, or datadog, the OTLP ingest of Datadog's agent")
	f.StringVar(&o.mark, "otlp-mark", "", "how what goes on to --otlp-forward says that it is counted: header, of the request alone, or attribute, of each resource too (default: header, with --otlp-reading=datadog attribute)")
	f.DurationVar(&c.Buffer, "otlp-buffer", c.Buffer, "how long a request of OTLP waits here for that destination while it is away; 0 for not at all")
	f.IntVar(&c.MaxConnections, "otlp-max-connections", c.MaxConnections, "SDKs connected at once to --otlp-addr and --otlp-socket")
	f.IntVar(&c.MaxStreams, "otlp-max-streams", c.MaxStreams, "requests that one connection of HTTP/2, as of gRPC, may have under way")
	f.IntVar(&c.Counters, "otlp-counters", c.Counters, "requests with traces of OTLP that are counted at a time")
	sizeVar(f, &c.MaxBody, "otlp-max-body", "longest request of OTLP, as it comes and without its gzip")
	sizeVar(f, &c.MaxBodyBytes, "otlp-max-body-bytes", "the same for all requests at a time")
}

// The marks of what is counted.
const (
	markHeader    = "header"
	markAttribute = "attribute"
)

// complete turns them into the configuration.
func (o *takingOptions) complete(c *otlp.Config) (mistakes error) {
	if o.forward != "" && o.forward != off {
		mistakes = readInto(&c.Forward, o.forward, otlp.ParseDestination)
	}
	if mistakes != nil {
		o.forward = "" // it may hold what nobody should see
	} else if o.ca != "" {
		mistakes = c.Forward.TrustIn(o.ca)
	}
	if o.keep != "" {
		var keep oteltraces.Keeping
		if err := readInto(&keep, o.keep, otlp.ParseKeeping); err != nil {
			return errors.Join(mistakes, err)
		}
		c.Keep = &keep
	}
	return errors.Join(mistakes, readInto(&c.Reading, o.reading, otlp.ParseReading), o.chooseMark(c))
}

// chooseMark finds out how what goes on is marked.
func (o *takingOptions) chooseMark(c *otlp.Config) error {
	switch {
	case o.mark != "" && !c.Forward.IsSet():
		return errors.New("parse --otlp-mark: there is no --otlp-forward, so that nothing goes on; give it, or leave --otlp-mark out")
	case o.mark == markAttribute, o.mark == "" && c.Reading == otlp.ReadingDatadog:
		c.Marks = c.Forward.IsSet()
	case o.mark != "" && o.mark != markHeader:
		return fmt.Errorf("parse --otlp-mark: %q is neither header nor attribute", o.mark)
	}
	return nil
}
