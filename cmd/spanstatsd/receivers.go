package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socketpath"
	"github.com/spanstatsd/spanstatsd/internal/ingest/zipkin"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spf13/pflag"
)

// spanOptions are flags about where spans come from, as far as they are to be read.
type spanOptions struct {
	allow     []uint
	labels    string
	forward   string
	authority string // of the certificate of the destination
	keep      string
	mark      string
	origins   []string

	zipkinForward   string
	zipkinAuthority string // of the certificate of that destination
}

// The words of --apm-labels and of --otlp-mark.
const (
	labelsOfAgent  = "agent"
	labelsOfTracer = "tracer"
	markHeader     = "header"
	markAttribute  = "attribute"
)

func (o *spanOptions) group(c *daemon.Config) *commandline.Group {
	g := commandline.NewGroup("Receivers")
	o.addFirst(g.First, c)
	o.addRest(g.Rest, c)
	o.addZipkin(g.Rest, &c.Zipkin)
	return g
}

func (o *spanOptions) addFirst(f *pflag.FlagSet, c *daemon.Config) {
	own, apm, otel := &c.Ingest.Socket, &c.APM, &c.OTLP
	f.Var(commandline.Text(&own.Path, commandline.Path), "socket",
		"path of the Unix socket for native clients; if the default's directory is not writable, a "+
			"directory of the user")
	f.Var(commandline.Parsed(&own.Mode, "0660", "octal", socket.ParseMode), "socket-mode",
		"permissions of --socket, --apm-socket, --otlp-socket and --zipkin-socket")
	f.Var(commandline.Text(&apm.Socket.Path, commandline.Path), "apm-socket",
		"Unix socket that emulates the Datadog agent's trace API; traces are counted and forwarded "+
			"to the agent (default: none)")
	f.Var(commandline.Text(&apm.Addr, "host:port"), "apm-addr",
		"loopback address that emulates the Datadog agent's trace API; traces are counted and "+
			"forwarded to the agent (default: none)")
	f.Var(commandline.Text(&otel.Addr, "host:port"), "otlp-addr",
		"loopback address that receives OTLP over HTTP and gRPC, such as 127.0.0.1:4318; spans are "+
			"counted (default: none)")
	f.Var(commandline.Text(&o.forward, "url"), "otlp-forward",
		"forward received OTLP traces, metrics and logs to this URL: http://host:4318, "+
			"grpc://host:4317, https://, grpcs:// or unix:///path (default: not forwarded)")
	f.Var(commandline.Text(&o.keep, "share"), "otlp-keep",
		"fraction of traces to forward, optionally with error and slow traces: 0.05 or "+
			"0.05,errors,slow:500ms; all spans are counted regardless (default: all)")
}

func (o *spanOptions) addRest(f *pflag.FlagSet, c *daemon.Config) {
	own, apm, otel := &c.Ingest.Socket, &c.APM, &c.OTLP
	f.Var(commandline.Parsed(&own.Owner, "", "UID:GID", socket.ParseOwner), "socket-owner",
		"owner of --socket, --apm-socket, --otlp-socket and --zipkin-socket (default: the daemon's "+
			"own)")
	f.UintSliceVar(&o.allow, "allow-uid", nil,
		"numeric user ID that may connect to --socket, --apm-socket, --otlp-socket and "+
			"--zipkin-socket; repeatable (default: every user with access to the socket)")
	f.Lookup("allow-uid").DefValue = ""
	f.VarPF((*dropMode)(&apm.DropUnsampled), "drop-unsampled", "",
		"don't forward unsampled traces to the agent (they are still counted): on, off, or auto to "+
			"follow the agent's client_drop_p0s setting").NoOptDefVal = "on"
	f.Var(commandline.Choice(&o.labels, labelsOfAgent, labelsOfAgent, labelsOfTracer), "apm-labels",
		"labels of traces from --apm-socket and --apm-addr: agent as the Datadog agent computes "+
			"them, or tracer as in the tracers' own statistics, with HTTP method and endpoint")
	f.StringSliceVar(&apm.Labels.AdditionalTags, "apm-additional-tags", nil,
		"span tags that become labels with --apm-labels=tracer, separated by commas, each with an "+
			"optional budget: tag=200 (default: DD_TRACE_STATS_ADDITIONAL_TAGS)")
	f.DurationVar(&apm.Buffer, "apm-buffer", apm.Buffer,
		"how long a request to --apm-socket or --apm-addr waits for an unreachable agent; 0 to fail "+
			"immediately")
	f.Var(commandline.Text(&otel.Socket.Path, commandline.Path), "otlp-socket",
		"Unix socket that receives OTLP over HTTP and gRPC; spans are counted (default: none)")
	rules := commandline.Choice(&otel.Reading, otel.Reading, otlp.ReadingOTel, otlp.ReadingDatadog)
	f.Var(rules, "otlp-reading",
		"rules for counting OTLP spans: otel for OpenTelemetry's semantic conventions, datadog for "+
			"the Datadog agent's OTLP ingest")
	f.Var(commandline.Choice(&o.mark, "", markHeader, markAttribute), "otlp-mark",
		"how forwarded OTLP requests are marked as counted: header, or attribute for a resource "+
			"attribute as well (default: header, with --otlp-reading=datadog attribute)")
	f.Var(commandline.Text(&o.authority, commandline.Path), "otlp-forward-ca",
		"PEM file with the certificate authorities for --otlp-forward (default: the system's)")
	f.StringSliceVar(&o.origins, "otlp-cors-origin", nil,
		"origin of web pages that may send OTLP: https://shop.example, with * for one label of the "+
			"host, or * for all; repeatable (default: none)")
	f.Lookup("otlp-cors-origin").DefValue = ""
	f.DurationVar(&otel.Buffer, "otlp-buffer", otel.Buffer,
		"how long an OTLP request waits for an unreachable --otlp-forward; 0 to fail immediately")
}

func (o *spanOptions) addZipkin(f *pflag.FlagSet, c *zipkin.Config) {
	f.Var(commandline.Text(&c.Addr, "host:port"), "zipkin-addr",
		"loopback address that receives Zipkin spans (POST /api/v2/spans), such as 127.0.0.1:9411; "+
			"spans are counted (default: none)")
	f.Var(commandline.Text(&c.Socket.Path, commandline.Path), "zipkin-socket",
		"Unix socket that receives Zipkin spans (POST /api/v2/spans); spans are counted (default: "+
			"none)")
	f.Var(commandline.Text(&o.zipkinForward, "url"), "zipkin-forward",
		"forward received Zipkin requests to this URL: http://host:9411, https:// or unix:///path "+
			"(default: not forwarded)")
	f.Var(commandline.Text(&o.zipkinAuthority, commandline.Path), "zipkin-forward-ca",
		"PEM file with the certificate authorities for --zipkin-forward (default: the system's)")
	f.DurationVar(&c.Buffer, "zipkin-buffer", c.Buffer,
		"how long a Zipkin request waits for an unreachable --zipkin-forward; 0 to fail immediately")
}

// complete turns them into the configuration.
func (o *spanOptions) complete(c *daemon.Config, s *settings) error {
	var badUID error
	for _, uid := range o.allow {
		if uint64(uid) > math.MaxUint32 {
			badUID = fmt.Errorf("parse --allow-uid: %d is no user's number", uid)
		}
		c.Ingest.AllowUIDs = append(c.Ingest.AllowUIDs, uint32(uid))
	}
	o.chooseSocket(&c.Ingest.Socket, s)
	if c.APM.DropUnsampled.String() == "auto" {
		s.of("drop-unsampled").Effective = "on where the agent says client_drop_p0s"
	}
	return errors.Join(badUID, limitTags(c), o.completeLabels(&c.APM.Labels, s), o.completeOTLP(&c.OTLP),
		o.completeZipkin(&c.Zipkin))
}

func (o *spanOptions) completeZipkin(c *zipkin.Config) error {
	if o.zipkinForward != "" && o.zipkinForward != off {
		if err := readInto(&c.Forward, o.zipkinForward, zipkin.Protocol.Parse); err != nil {
			o.zipkinForward = "" // it may hold what nobody should see
			return err
		}
	}
	if o.zipkinAuthority == "" {
		return nil
	}
	return zipkin.Protocol.TrustIn(&c.Forward, o.zipkinAuthority) //nolint:wrapcheck // it says what to do
}

// chooseSocket finds the socket path where nobody has named the socket. A service manager that listens in
// the daemon's place does so at the default.
func (o *spanOptions) chooseSocket(own *socket.Config, s *settings) {
	if !s.isSet("socket") && os.Getenv("LISTEN_FDS") == "" {
		own.Path, own.Private = socketpath.OfDaemon()
	}
}

func (o *spanOptions) completeOTLP(c *otlp.Config) (mistakes error) {
	if o.forward != "" && o.forward != off {
		mistakes = readInto(&c.Forward, o.forward, otlp.ParseCollector)
	}
	if mistakes != nil {
		o.forward = "" // it may hold what nobody should see
	} else if o.authority != "" {
		mistakes = c.Forward.TrustIn(o.authority)
	}
	var bad error
	c.Origins, bad = otlp.ParseOrigins(o.origins)
	mistakes = errors.Join(mistakes, bad)
	if o.keep != "" {
		var keep sampling.Keeping
		if err := readInto(&keep, o.keep, sampling.ParseKeeping); err != nil {
			return errors.Join(mistakes, err)
		}
		c.Keep = &keep
	}
	return errors.Join(mistakes, o.chooseMark(c))
}

// chooseMark finds out how what goes on is marked.
func (o *spanOptions) chooseMark(c *otlp.Config) error {
	if o.mark != "" && !c.Forward.IsSet() {
		return errors.New("parse --otlp-mark: there is no --otlp-forward, so that nothing goes on; give " +
			"it, or leave --otlp-mark out")
	}
	attribute := o.mark == markAttribute || o.mark == "" && c.Reading == otlp.ReadingDatadog
	c.Marks = attribute && c.Forward.IsSet()
	return nil
}

// limitTags takes the budgets from the names of additional tags.
func limitTags(c *daemon.Config) (mistakes error) {
	tags := c.APM.Labels.AdditionalTags
	for i, given := range tags {
		name, budget, has := strings.Cut(given, "=")
		if !has {
			continue
		}
		limit, err := strconv.Atoi(budget)
		if err != nil {
			mistakes = errors.Join(mistakes, fmt.Errorf("parse --apm-additional-tags: %q is not tag=N; "+
				"give a number of values, as tenant.id=200", given))
		}
		tags[i] = name
		c.Aggregate.LimitTag(name, limit)
	}
	return mistakes
}

// The variables that tell tracers what their statistics hold. Where they are set for the
// daemon too, it does the same.
const (
	additionalTagsVariable = "DD_TRACE_STATS_ADDITIONAL_TAGS"
	renamingVariable       = "DD_TRACE_RESOURCE_RENAMING_ENABLED"
)

// completeLabels takes from tracers' variables what no flag said of labels.
func (o *spanOptions) completeLabels(labels *rules.Labels, s *settings) error {
	labels.OfTracer = o.labels == labelsOfTracer
	if !labels.OfTracer {
		return nil
	}
	if given := os.Getenv(additionalTagsVariable); given != "" && len(labels.AdditionalTags) == 0 {
		said := rules.Labels{AdditionalTags: tagNames(given)}
		if err := said.Check(); err != nil {
			return fmt.Errorf("read environment variable %s: %w", additionalTagsVariable, err)
		}
		labels.AdditionalTags = said.AdditionalTags
		s.fromVariable("apm-additional-tags", additionalTagsVariable)
	}
	renames, err := strconv.ParseBool(cmp.Or(os.Getenv(renamingVariable), "false"))
	if err != nil {
		return fmt.Errorf("read environment variable %s: %q is neither true nor false", renamingVariable,
			os.Getenv(renamingVariable))
	}
	labels.RenamesResources = renames
	return nil
}

// tagNames are the names of a list, each once.
func tagNames(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// dropMode is the value of the flag for unsampled traces. Without a text it is on.
type dropMode datadog.Dropping

func (d *dropMode) Set(given string) error {
	parsed, err := datadog.ParseDropping(given)
	if err != nil {
		return fmt.Errorf("%q is none of auto, on, off", given)
	}
	*d = dropMode(parsed)
	return nil
}

func (d *dropMode) String() string { return datadog.Dropping(*d).String() }

func (*dropMode) Type() string { return "auto|on|off" }
