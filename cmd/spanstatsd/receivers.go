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
	g := commandline.NewGroup("Where spans come from")
	o.addFirst(g.First, c)
	o.addRest(g.Rest, c)
	o.addZipkin(g.Rest, &c.Zipkin)
	return g
}

func (o *spanOptions) addFirst(f *pflag.FlagSet, c *daemon.Config) {
	own, apm, otel := &c.Ingest.Socket, &c.APM, &c.OTLP
	f.Var(commandline.Text(&own.Path, commandline.Path), "socket",
		"Unix socket that tracers write their spans to; where the directory of the default is not there or "+
			"may not be written, spans.sock below XDG_RUNTIME_DIR/spanstatsd or the directory of temporary "+
			"files")
	f.Var(commandline.Parsed(&own.Mode, "0660", "octal", socket.ParseMode), "socket-mode",
		"permissions of --socket, --apm-socket, --otlp-socket and --zipkin-socket")
	f.Var(commandline.Text(&apm.Socket.Path, commandline.Path), "apm-socket",
		"Unix socket that takes the agent's place for Datadog's tracers: their traces are counted and "+
			"forwarded to the agent (default: none)")
	f.Var(commandline.Text(&apm.Addr, "host:port"), "apm-addr",
		"address on loopback that takes the agent's place for Datadog's tracers: their traces are counted "+
			"and forwarded to the agent (default: none)")
	f.Var(commandline.Text(&otel.Addr, "host:port"), "otlp-addr",
		"address on loopback that takes OTLP from OpenTelemetry's SDKs, by HTTP and gRPC, and counts the "+
			"spans of their traces (default: none)")
	f.Var(commandline.Text(&o.forward, "url"), "otlp-forward",
		"where OTLP goes on to from --otlp-addr and --otlp-socket, traces, metrics and logs: "+
			"http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path (default: it ends "+
			"here)")
	f.Var(commandline.Text(&o.keep, "share"), "otlp-keep",
		"which traces go on to --otlp-forward: a share of all, and what goes on beside it, as 0.05 or "+
			"0.05,errors,slow:500ms; all are counted (default: all go on)")
}

func (o *spanOptions) addRest(f *pflag.FlagSet, c *daemon.Config) {
	own, apm, otel := &c.Ingest.Socket, &c.APM, &c.OTLP
	f.Var(commandline.Parsed(&own.Owner, "", "UID:GID", socket.ParseOwner), "socket-owner",
		"owner of --socket, --apm-socket, --otlp-socket and --zipkin-socket (default: the daemon's own)")
	f.UintSliceVar(&o.allow, "allow-uid", nil,
		"user, by number, that may connect to --socket, --apm-socket, --otlp-socket and --zipkin-socket; "+
			"may be repeated (default: whoever may open the socket)")
	f.Lookup("allow-uid").DefValue = ""
	f.VarPF((*dropMode)(&apm.DropUnsampled), "drop-unsampled", "",
		"whether traces that sampling threw away are counted and not forwarded to the agent: auto where "+
			"the agent says that it does without them, on, off").NoOptDefVal = "on"
	f.Var(commandline.Choice(&o.labels, labelsOfAgent, labelsOfAgent, labelsOfTracer), "apm-labels",
		"labels of traces from --apm-socket and --apm-addr: agent for those that the agent gives them, "+
			"tracer for those that the statistics of tracers have, HTTP method and endpoint for instance")
	f.StringSliceVar(&apm.Labels.AdditionalTags, "apm-additional-tags", nil,
		"tags that become labels with --apm-labels=tracer, as tag,tag, each with a budget as tag=200 where "+
			"it has one of its own (default: DD_TRACE_STATS_ADDITIONAL_TAGS)")
	f.DurationVar(&apm.Buffer, "apm-buffer", apm.Buffer,
		"how long a request to --apm-socket or --apm-addr waits for an agent that is away; 0 for not at "+
			"all")
	f.Var(commandline.Text(&otel.Socket.Path, commandline.Path), "otlp-socket",
		"Unix socket that takes OTLP from OpenTelemetry's SDKs, by HTTP and gRPC, and counts the spans of "+
			"their traces (default: none)")
	rules := commandline.Choice(&otel.Reading, otel.Reading, otlp.ReadingOTel, otlp.ReadingDatadog)
	f.Var(rules, "otlp-reading",
		"whose rules say which spans of OTLP count, and under which labels: otel for OpenTelemetry's "+
			"semantic conventions, datadog for the OTLP ingest of Datadog's agent")
	f.Var(commandline.Choice(&o.mark, "", markHeader, markAttribute), "otlp-mark",
		"how OTLP is marked as counted where it goes on to --otlp-forward: by a header of its request, or "+
			"by an attribute of each resource too (default: header, with --otlp-reading=datadog "+
			"attribute)")
	f.Var(commandline.Text(&o.authority, commandline.Path), "otlp-forward-ca",
		"file in PEM with the authorities that the certificate of --otlp-forward is checked by (default: "+
			"the system's)")
	f.StringSliceVar(&o.origins, "otlp-cors-origin", nil,
		"origin of pages whose scripts may send OTLP from a browser, as https://shop.example, with * as one "+
			"label of the host, or * for all; may be repeated (default: none, no browser is answered)")
	f.Lookup("otlp-cors-origin").DefValue = ""
	f.DurationVar(&otel.Buffer, "otlp-buffer", otel.Buffer,
		"how long a request of OTLP waits for a --otlp-forward that is away; 0 for not at all")
}

func (o *spanOptions) addZipkin(f *pflag.FlagSet, c *zipkin.Config) {
	f.Var(commandline.Text(&c.Addr, "host:port"), "zipkin-addr",
		"address on loopback that takes spans as Zipkin does, POST /api/v2/spans, and counts them (default: "+
			"none)")
	f.Var(commandline.Text(&c.Socket.Path, commandline.Path), "zipkin-socket",
		"Unix socket that takes spans as Zipkin does, and counts them (default: none)")
	f.Var(commandline.Text(&o.zipkinForward, "url"), "zipkin-forward",
		"where requests go on to from --zipkin-addr and --zipkin-socket: http://host:9411, https:// or "+
			"unix:///path (default: they end here)")
	f.Var(commandline.Text(&o.zipkinAuthority, commandline.Path), "zipkin-forward-ca",
		"file in PEM with the authorities that the certificate of --zipkin-forward is checked by (default: "+
			"the system's)")
	f.DurationVar(&c.Buffer, "zipkin-buffer", c.Buffer,
		"how long a request of Zipkin waits for a --zipkin-forward that is away; 0 for not at all")
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
		var keep sampling.Policy
		if err := readInto(&keep, o.keep, sampling.ParsePolicy); err != nil {
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
