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
)

// receiverOptions holds the flags of receivers that have to be parsed together with others.
type receiverOptions struct {
	allowedUIDs   []uint
	labels        string
	otlpForward   string
	otlpCA        string
	otlpKeep      string
	otlpMark      string
	spanNames     string
	corsOrigins   []string
	zipkinForward string
	zipkinCA      string
}

// Values of --apm-labels, --otlp-mark and --span-names.
const (
	labelsOfAgent  = "agent"
	labelsOfTracer = "tracer"
	markHeader     = "header"
	markAttribute  = "attribute"

	namesByConvention = "convention"
	namesAsSent       = "as-sent"
)

// group declares the flags. It stores the values of some of them directly in c.
func (o *receiverOptions) group(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("Receivers")
	f, native, apm, sdk, zip := g.Flags, &c.Ingest.Socket, &c.APM, &c.OTLP, &c.Zipkin
	f.Var(commandline.Text(&native.Path, commandline.Path), "socket",
		"path of the Unix socket for native clients; if the directory of the default is not writable, a "+
			"socket in a directory of the user")
	f.Var(commandline.Parsed(&native.Mode, "0660", "octal", socket.ParseMode), "socket-mode",
		"permissions of --socket, --apm-socket, --otlp-socket and --zipkin-socket")
	f.Var(commandline.Text(&apm.Socket.Path, commandline.Path), "apm-socket",
		"Unix socket that emulates the Datadog agent's trace API; traces are counted and forwarded "+
			"to the agent (default: none)")
	f.Var(commandline.Text(&apm.Addr, "host:port"), "apm-addr",
		"loopback address that emulates the Datadog agent's trace API; traces are counted and "+
			"forwarded to the agent (default: none)")
	f.Var(commandline.Text(&sdk.Addr, "host:port"), "otlp-addr",
		"loopback address that receives OTLP over HTTP and gRPC, such as 127.0.0.1:4318; spans are "+
			"counted (default: none)")
	f.Var(commandline.Text(&o.otlpForward, "url"), "otlp-forward",
		"forward received OTLP traces, metrics and logs to this URL: http://host:4318, "+
			"grpc://host:4317, https://, grpcs:// or unix:///path (default: not forwarded)")
	f.Var(commandline.Text(&o.otlpKeep, "share"), "otlp-keep",
		"fraction of traces to forward, optionally with error and slow traces: 0.05 or "+
			"0.05,errors,slow:500ms; all spans are counted regardless (default: all)")
	f.Var(commandline.Parsed(&native.Owner, "", "UID:GID", socket.ParseOwner), "socket-owner",
		"owner of --socket, --apm-socket, --otlp-socket and --zipkin-socket (default: the user and group of "+
			"the daemon)")
	f.UintSliceVar(&o.allowedUIDs, "allow-uid", nil,
		"numeric user ID that may connect to --socket, --apm-socket, --otlp-socket and "+
			"--zipkin-socket; repeatable (default: every user with access to the socket)")
	f.Lookup("allow-uid").DefValue = ""
	f.Var(commandline.Choice(&apm.DropUnsampled, datadog.DropAuto, datadog.DropAuto, datadog.DropOn, datadog.DropOff),
		"drop-unsampled", "don't forward unsampled traces to the agent (they are still counted): on, off, or auto to "+
			"follow the agent's client_drop_p0s setting")
	f.Lookup("drop-unsampled").NoOptDefVal = on
	f.Var(commandline.Choice(&o.labels, labelsOfAgent, labelsOfAgent, labelsOfTracer), "apm-labels",
		"labels of traces from --apm-socket and --apm-addr: agent as the Datadog agent computes "+
			"them, or tracer as in the tracers' own statistics, with HTTP method and endpoint")
	f.StringSliceVar(&apm.Labels.AdditionalTags, "apm-additional-tags", nil,
		"span tags that become labels with --apm-labels=tracer, separated by commas, each with an "+
			"optional budget: tag=200 (default: DD_TRACE_STATS_ADDITIONAL_TAGS)")
	f.DurationVar(&apm.Buffer, "apm-buffer", apm.Buffer,
		"how long a request to --apm-socket or --apm-addr waits for an unreachable agent; 0 to fail "+
			"immediately")
	f.Var(commandline.Text(&sdk.Socket.Path, commandline.Path), "otlp-socket",
		"Unix socket that receives OTLP over HTTP and gRPC; spans are counted (default: none)")
	f.Var(commandline.Choice(&sdk.Semantics, sdk.Semantics, otlp.SemanticsOTel, otlp.SemanticsDatadog), "otlp-semantics",
		"rules for counting OTLP spans: otel for OpenTelemetry's semantic conventions, datadog for "+
			"the Datadog agent's OTLP ingest")
	f.Var(commandline.Choice(&o.spanNames, namesByConvention, namesByConvention, namesAsSent), "span-names",
		"names of OTLP and Zipkin spans: convention to derive them from attributes by "+
			"OpenTelemetry's semantic conventions, or as-sent")
	f.Var(commandline.Choice(&o.otlpMark, "", markHeader, markAttribute), "otlp-mark",
		"how forwarded OTLP requests are marked as counted: header, or attribute for a resource "+
			"attribute as well (default: header, with --otlp-semantics=datadog attribute)")
	f.Var(commandline.Text(&o.otlpCA, commandline.Path), "otlp-forward-ca",
		"PEM file with the certificate authorities for --otlp-forward (default: the system's)")
	f.StringSliceVar(&o.corsOrigins, "otlp-cors-origin", nil,
		"origin of web pages that may send OTLP: https://shop.example, with * for one label of the host name, "+
			"or * for all; repeatable (default: none)")
	f.DurationVar(&sdk.Buffer, "otlp-buffer", sdk.Buffer,
		"how long an OTLP request waits for an unreachable --otlp-forward; 0 to fail immediately")
	f.Var(commandline.Text(&zip.Addr, "host:port"), "zipkin-addr",
		"loopback address that receives Zipkin spans (POST /api/v2/spans), such as 127.0.0.1:9411; "+
			"spans are counted (default: none)")
	f.Var(commandline.Text(&zip.Socket.Path, commandline.Path), "zipkin-socket",
		"Unix socket that receives Zipkin spans (POST /api/v2/spans); spans are counted (default: "+
			"none)")
	f.Var(commandline.Text(&o.zipkinForward, "url"), "zipkin-forward",
		"forward received Zipkin requests to this URL: http://host:9411, https:// or unix:///path "+
			"(default: not forwarded)")
	f.Var(commandline.Text(&o.zipkinCA, commandline.Path), "zipkin-forward-ca",
		"PEM file with the certificate authorities for --zipkin-forward (default: the system's)")
	f.DurationVar(&zip.Buffer, "zipkin-buffer", zip.Buffer,
		"how long a Zipkin request waits for an unreachable --zipkin-forward; 0 to fail immediately")
	return g
}

// complete parses the flags that are not stored directly in c, and stores their values in c. It returns
// the joined errors of all invalid flags.
func (o *receiverOptions) complete(c *daemon.Config, s *settings) error {
	// A socket that systemd opened is at the default path already.
	isOpenedBySystemd := os.Getenv("LISTEN_FDS") != ""
	if !isOpenedBySystemd && !s.isSet("socket") {
		c.Ingest.Socket.Path, c.Ingest.Socket.Private = socketpath.ForDaemon()
	}
	c.OTLP.Labels.KeepNames = o.spanNames == namesAsSent
	c.Zipkin.Labels.KeepNames = c.OTLP.Labels.KeepNames
	if c.APM.DropUnsampled == datadog.DropAuto {
		s.setting("drop-unsampled").Effective = "on if the agent has client_drop_p0s"
	}
	return errors.Join(
		o.completeUIDs(c), o.completeTags(c, s), o.completeOTLP(&c.OTLP), o.completeZipkin(&c.Zipkin),
	)
}

// completeUIDs sets the users that may connect. It returns an error for a number that is not a user ID.
func (o *receiverOptions) completeUIDs(c *daemon.Config) (err error) {
	for _, uid := range o.allowedUIDs {
		if uint64(uid) > math.MaxUint32 {
			err = fmt.Errorf("parse --allow-uid: %d is not a user ID; use numbers up to 4294967295", uid)
		}
		c.Ingest.AllowUIDs = append(c.Ingest.AllowUIDs, uint32(uid))
	}
	return err
}

// completeZipkin sets the upstream to which Zipkin requests are forwarded, and its certificate
// authority.
func (o *receiverOptions) completeZipkin(c *zipkin.Config) error {
	forwards := o.zipkinForward != "" && o.zipkinForward != off
	if forwards {
		if err := parseInto(&c.Forward, o.zipkinForward, zipkin.Protocol.Parse); err != nil {
			return err
		}
	}
	if o.zipkinCA == "" {
		return nil
	}
	return zipkin.Protocol.SetCAFile(&c.Forward, o.zipkinCA) //nolint:wrapcheck // the error is complete
}

// completeOTLP sets how OTLP requests are forwarded: the upstream, the sampling of traces, and the mark
// of counted spans. It also sets the web pages that may send requests.
func (o *receiverOptions) completeOTLP(c *otlp.Config) error {
	forwardErr := o.completeForward(c)
	origins, originsErr := otlp.ParseOrigins(o.corsOrigins)
	c.AllowedOrigins = origins
	samplingErr := o.completeSampling(c)
	var markErr error
	if o.otlpMark != "" && forwardErr == nil && !c.Forward.IsSet() {
		markErr = errors.New("parse --otlp-mark: nothing is forwarded without --otlp-forward; set it, or remove " +
			"--otlp-mark")
	}
	marksByDefault := o.otlpMark == "" && c.Semantics == otlp.SemanticsDatadog
	c.MarksCounted = c.Forward.IsSet() && (o.otlpMark == markAttribute || marksByDefault)
	return errors.Join(forwardErr, originsErr, samplingErr, markErr)
}

// completeForward sets the upstream to which OTLP requests are forwarded, and its certificate authority.
func (o *receiverOptions) completeForward(c *otlp.Config) error {
	forwards := o.otlpForward != "" && o.otlpForward != off
	if forwards {
		if err := parseInto(&c.Forward, o.otlpForward, otlp.ParseCollector); err != nil {
			return err
		}
	}
	if o.otlpCA == "" {
		return nil
	}
	return c.Forward.TrustIn(o.otlpCA) //nolint:wrapcheck // the error is complete
}

// completeSampling sets which traces are forwarded, from --otlp-keep.
func (o *receiverOptions) completeSampling(c *otlp.Config) error {
	if o.otlpKeep == "" {
		return nil
	}
	policy, err := sampling.ParsePolicy(o.otlpKeep)
	if err != nil {
		return err //nolint:wrapcheck // the error is complete
	}
	c.Keep = &policy
	return nil
}

// Environment variables that configure the labels of tracers' own statistics. If they are set for
// the daemon too, they provide the defaults of flags.
const (
	additionalTagsVariable = "DD_TRACE_STATS_ADDITIONAL_TAGS"
	renamingVariable       = "DD_TRACE_RESOURCE_RENAMING_ENABLED"
)

// completeTags sets the labels of spans from Datadog tracers, from flags and from environment variables
// that configure tracers.
func (o *receiverOptions) completeTags(c *daemon.Config, s *settings) error {
	labels := &c.APM.Labels
	budgetErr := limitAdditionalTags(c)
	labels.OfTracer = o.labels == labelsOfTracer
	if !labels.OfTracer {
		return budgetErr
	}
	if len(labels.AdditionalTags) == 0 {
		if err := readAdditionalTags(labels, s); err != nil {
			return err
		}
	}
	renames, err := strconv.ParseBool(cmp.Or(os.Getenv(renamingVariable), "false"))
	labels.RenamesResources = renames
	if err != nil {
		err = fmt.Errorf("read environment variable %s: %q is neither true nor false",
			renamingVariable, os.Getenv(renamingVariable))
	}
	return errors.Join(budgetErr, err)
}

// limitAdditionalTags sets the budgets in --apm-additional-tags, which has elements such as tenant.id or
// tenant.id=200. It removes the budgets from the elements.
func limitAdditionalTags(c *daemon.Config) (err error) {
	tags := c.APM.Labels.AdditionalTags
	for i, tag := range tags {
		name, budget, hasBudget := strings.Cut(tag, "=")
		tags[i] = name
		if hasBudget {
			err = errors.Join(err, limitTag(c, "apm-additional-tags", name, budget))
		}
	}
	return err
}

// readAdditionalTags sets the additional tags from the environment variable that configures them in
// tracers.
func readAdditionalTags(labels *rules.Labels, s *settings) error {
	tags := rules.Labels{AdditionalTags: splitNames(os.Getenv(additionalTagsVariable))}
	if err := tags.Check(); err != nil {
		return fmt.Errorf("read environment variable %s: %w", additionalTagsVariable, err)
	}
	labels.AdditionalTags = tags.AdditionalTags
	if len(tags.AdditionalTags) > 0 {
		s.recordVariables("apm-additional-tags", additionalTagsVariable)
	}
	return nil
}

// limitTag sets the budget of a tag, its maximum number of distinct values. flag is the flag that
// contains the budget, for errors.
func limitTag(c *daemon.Config, flag, name, budget string) error {
	limit, err := strconv.Atoi(budget)
	if name == "" || err != nil {
		return fmt.Errorf("parse --%s: %q is not a tag with a maximum number of values; use both, such as "+
			"tenant.id=200", flag,
			name+"="+budget)
	}
	c.Aggregate.LimitTag(name, limit)
	return nil
}

// splitNames returns the names in a comma-separated list, without spaces, empty names and duplicates.
func splitNames(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
	}
	return names
}
