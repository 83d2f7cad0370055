package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/dump"
	"github.com/spanstatsd/spanstatsd/internal/flush/agent"
	"github.com/spanstatsd/spanstatsd/internal/logqueue"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/systemd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runOptions are the flags of run as they were given.
type runOptions struct {
	config   daemon.Config
	socket   socketOptions
	otlp     otlpOptions
	taking   takingOptions
	agentURL string
	// agentVariables are those that chose it, where no flag did.
	agentVariables string
	drainers       string
	partitions     string
	buffer         string
	cardinality    []string
	// limits are those of cardinality that variables of tracers set, tagsVariable is the one
	// that named additional tags.
	limits         []string
	limitVariables []string
	tagsVariable   string
	logLevel       string
	logFormat      string
}

func newRunOptions() *runOptions {
	return &runOptions{config: daemon.DefaultConfig()}
}

func (o *runOptions) addFlags(f *pflag.FlagSet) {
	in, adm, agg, out := &o.config.Ingest, &o.config.Admit, &o.config.Aggregate, &o.config.Flush
	o.socket.addFlags(f, in)
	traces := &o.config.APM
	f.StringVar(&traces.Socket.Path, "apm-socket", "", "Unix socket that is the agent to tracers as they are: their traces are counted here and forwarded (default: none)")
	f.StringVar(&traces.Addr, "apm-addr", "", "the same as host:port, on loopback (default: none)")
	droppingVar(f, &traces.DropUnsampled, "drop-unsampled", "count traces that sampling threw away, and do not forward them: auto where the agent says that it does without them, on, off")
	addLabelFlags(f, &traces.Labels)
	f.DurationVar(&traces.Buffer, "apm-buffer", traces.Buffer, "how long a tracer's request waits here for an agent that is away; 0 for not at all")
	f.IntVar(&traces.MaxConnections, "apm-max-connections", traces.MaxConnections, "tracers connected at once to --apm-socket and --apm-addr")
	f.IntVar(&traces.Counters, "apm-counters", traces.Counters, "requests with traces that are counted at a time")
	sizeVar(f, &traces.MaxBody, "apm-max-body", "longest request with traces that is counted; a longer one is left to the agent")
	sizeVar(f, &traces.MaxBodyBytes, "apm-max-body-bytes", "the same for all requests at a time")
	o.taking.addFlags(f, &o.config.OTLP)
	f.IntVar(&in.MaxConnections, "max-connections", in.MaxConnections, "tracers connected at once")
	sizeVar(f, &in.MaxFrame, "max-frame", "longest frame")
	f.IntVar(&adm.MaxBatch, "max-batch", adm.MaxBatch, "most snapshots in one batch")
	f.IntVar(&adm.MaxKeys, "max-keys", adm.MaxKeys, "keys that a connection may number, and as many that it may use without")
	sizeVar(f, &adm.MaxKeyBytes, "max-key-bytes", "memory for the keys that a connection has remembered; tracers are told 7/8 of it")
	sizeVar(f, &adm.MaxKeyBytesInAll, "max-key-bytes-in-all", "the same over all connections")
	sizeVar(f, &adm.MaxResource, "max-resource-bytes", "bytes of a resource that are kept; the agent keeps 5000")
	sizeVar(f, &in.MaxBufferBytes, "max-buffer-bytes", "memory for frames over 64 KiB, all together")
	sizeVar(f, &in.MaxByteRate, "max-byte-rate", "bytes a second read from one connection; 0 for any")
	f.DurationVar(&in.ReadTimeout, "read-timeout", in.ReadTimeout, "time to complete a frame once begun")
	f.StringVar(&o.buffer, "buffer", "drop", "what a full ring does to a batch: drop it, or block its tracer")
	f.StringVar(&o.drainers, "drainers", "cpu:1", "goroutines that count: cpu:1 (one a core), cpu+1:0.25 (a base and a share of the cores), fixed:4")
	f.StringVar(&o.partitions, "partitions", "adaptive", "shares of the key space: adaptive, adaptive:25 (that many aggregates a drainer get one each), fixed:N, per-drainer:N")
	f.DurationVar(&agg.RebalanceInterval, "rebalance-interval", agg.RebalanceInterval, "how often the drainers' shares are levelled; 0 for never")
	f.IntVar(&agg.RingSlots, "ring-slots", agg.RingSlots, "slots a ring, a power of two")
	f.IntVar(&agg.MaxAggregates, "max-aggregates", agg.MaxAggregates, "aggregates an interval, all origins together; what is beyond them meets in one overflow aggregate an origin")
	sizeVar(f, &agg.LabelBytes, "label-bytes", "memory for the labels of an interval's keys; beyond it a new key meets others in its origin's overflow aggregate")
	f.IntVar(&agg.MaxOrigins, "max-origins", agg.MaxOrigins, "origins an interval")
	sizeVar(f, &agg.SketchBytes, "sketch-bytes", "memory for the bins of all sketches; beyond it the lowest bins of a sketch collapse into one")
	f.StringSliceVar(&o.cardinality, "cardinality-limit", nil, "distinct values a field may have an origin and interval, as field=N,field=N; may be repeated")
	f.BoolVar(&agg.ConflateRuntimes, "conflate-runtimes", agg.ConflateRuntimes, "send origins that differ only in runtime id as one")
	f.BoolVar(&agg.FoldNames, "fold-names", agg.FoldNames, "count resources and endpoints that have no room for their own name under that of a template, as /users/{id}, where one explains them")
	f.DurationVar(&agg.FlushInterval, "flush-interval", agg.FlushInterval, "length of an interval, 1s to 10s")
	f.StringVar(&o.agentURL, "agent-url", "", "where the agent is, http://host:port or unix:///path; off for none (default: DD_TRACE_AGENT_URL, DD_AGENT_HOST and DD_TRACE_AGENT_PORT, else http://127.0.0.1:8126)")
	o.otlp.addFlags(f)
	sizeVar(f, &out.RetryBytes, "retry-bytes", "bytes of payloads that may wait for a destination, for each")
	f.DurationVar(&out.RetryAge, "retry-age", out.RetryAge, "how long a payload may wait for its destination")
	f.StringVar(&o.config.Agent.DebugDir, "debug-dir", "", "directory to keep payloads in that the agent refuses, for spanstatsd dump (default: with --debug that of temporary files, else none)")
	f.StringVar(&o.config.HTTPAddr, "http-addr", o.config.HTTPAddr, "address of metrics, probes, /status and the page for a person at /")
	f.StringVar(&o.config.WebConfigFile, "web-config-file", "", "TLS and basic auth of that address, a file in the Prometheus ecosystem's format")
	f.BoolVar(&o.config.Debug, "debug", false, "answer what only a developer asks for: /debug/pprof")
	f.DurationVar(&o.config.ShutdownGrace, "shutdown-grace", o.config.ShutdownGrace, "time to deliver everything after SIGTERM, SIGINT or SIGHUP")
	addLogFlags(f, &o.logLevel, &o.logFormat, "info")
}

// complete turns the flags into a configuration, or says of each that can't be
// used why.
func (o *runOptions) complete() error {
	// What can't be read leaves its default, so that nothing follows from it.
	badDrainers := readInto(&o.config.Aggregate.Drainers, o.drainers, parseDrainers)
	badPartitions := readInto(&o.config.Aggregate.Partitions, o.partitions, parsePartitions)
	if o.agentURL == "" {
		o.agentURL, o.agentVariables = agentFromEnvironment()
	}
	badAgent := o.chooseAgent()
	badTaking := o.taking.complete(&o.config.OTLP)
	badOTLP := o.addOTLP()
	if out := &o.config.Agent; o.config.Debug && out.DebugDir == "" {
		// Under a read-only root there may be no such place; then none are kept.
		if _, err := dump.Open(os.TempDir()); err == nil {
			out.DebugDir = os.TempDir()
		}
	}
	o.config.Admit.DefaultHost, o.config.Admit.DefaultEnv = os.Getenv("DD_HOSTNAME"), os.Getenv("DD_ENV")
	o.config.Version = version
	return errors.Join(o.socket.complete(&o.config.Ingest), o.chooseBuffer(), badDrainers, badPartitions,
		o.limitCardinalities(), o.completeLabels(), o.checkRetry(), badAgent, badOTLP, badTaking)
}

// defaultAgent is where the agent is if nobody says otherwise.
var defaultAgent = agent.URL{Network: "tcp", Address: "127.0.0.1:8126"}

// off stands for no destination.
const off = "off"

func (o *runOptions) chooseAgent() error {
	if o.agentURL == off {
		return nil
	}
	o.config.Agent.URL = defaultAgent
	return readInto(&o.config.Agent.URL, o.agentURL, agent.ParseURL)
}

// addOTLP adds the OTLP destination, where there is one.
func (o *runOptions) addOTLP() error {
	exporter, err := o.otlp.exporter(&o.config)
	if exporter != nil {
		o.config.Exporters = append(o.config.Exporters, exporter)
	}
	return err
}

// readInto reads a text, and leaves what is there where it can't.
func readInto[T any](into *T, text string, read func(string) (T, error)) error {
	value, err := read(text)
	if err == nil {
		*into = value
	}
	return err
}

func (o *runOptions) chooseBuffer() error {
	o.config.Admit.Block = o.buffer == "block"
	if o.buffer != "drop" && o.buffer != "block" {
		return fmt.Errorf("parse --buffer: %q is neither drop nor block", o.buffer)
	}
	return nil
}

func (o *runOptions) checkRetry() error {
	if out := &o.config.Flush; out.RetryAge == 0 || out.RetryBytes == 0 { // the flush takes 0 for its default
		return fmt.Errorf("parse --retry-age and --retry-bytes: %s and %d must be positive", out.RetryAge, out.RetryBytes)
	}
	return nil
}

// read makes the configuration of the flags and of their variables. It returns all that
// is wrong, and has read the rest.
func (o *runOptions) read(cmd *cobra.Command, flags *pflag.FlagSet) (err error) {
	mistakes := []error{applyEnvironment(cmd), o.complete()}
	o.fitMemory(flags, memory.Find(os.DirFS("/")))
	o.fitDescriptors(flags, descriptorLimit())
	o.config.Settings = o.settings(flags)
	o.config.Log, err = newLogger(cmd.ErrOrStderr(), o.logLevel, o.logFormat)
	return asUsage(append(mistakes, err)...)
}

// check returns all that is wrong with what was read.
func (o *runOptions) check(cmd *cobra.Command, flags *pflag.FlagSet) error {
	return asUsage(o.read(cmd, flags), o.config.Check())
}

func newRunCommand() *cobra.Command {
	o := newRunOptions()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `Run the daemon until SIGTERM, SIGINT or SIGHUP. It then stops accepting, reads
what tracers have already written, and delivers everything, the open bucket
included, within --shutdown-grace. A second signal ends it at once.

Every flag has an environment variable: SPANSTATSD_ and the flag's name in
capitals, with _ for -. A flag goes before the variable, the variable before the
default. A variable that begins so and is no flag's is an error. A size is a number
of bytes, or of KiB, MiB or GiB: 16MiB. Whatever can't be used is named at once, one
reason a line, and ends it with 2.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err = o.check(cmd, cmd.Flags()); err != nil {
				return err
			}
			if queue, ok := cmd.ErrOrStderr().(*logqueue.Queue); ok {
				o.config.LogLinesLost = queue.Lost
				queue.OnLost(func(lines uint64) {
					o.config.Log.Warn("log lines were lost: nobody read them in time", "lines", lines)
				})
			}
			takeLibraryLog(o.config.Log)
			if o.config.Supervisor, err = systemd.Open(o.config.Log); err != nil {
				return usageError{err}
			}
			if err = o.takeSockets(); err != nil {
				return usageError{err}
			}
			return run(o.config)
		},
	}
	o.addFlags(cmd.Flags())
	o.namesAll(cmd, cmd.Flags())
	return cmd
}

// stopSignals is told of each signal that means an end. A terminal that closes is one,
// unless it was set aside (nohup); a log's end that is gone is none.
func stopSignals() chan os.Signal {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	return signals
}

// run holds the daemon until a signal. A second signal ends the process where
// it stands, with what is not delivered lost.
func run(config daemon.Config) error {
	signals := stopSignals()
	defer signal.Stop(signals)
	if told := memory.Tell(config.MemoryLimit); told > 0 {
		config.Log.Info("the collector was told of the memory limit", "limit", memory.Text(config.MemoryLimit.Bytes),
			"from", config.MemoryLimit.Source, "told", memory.Text(told))
	}
	d, err := daemon.New(config)
	if err != nil {
		return err
	}
	d.Start()
	received := <-signals
	config.Log.Info("stopping", "signal", received.String(), "grace", config.ShutdownGrace.String())
	stopped := make(chan struct{})
	balanced := false
	go func() {
		balanced = d.Stop().Balanced
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-signals:
		return errors.New("stop daemon: a second signal came; what was not delivered is lost")
	}
	if !balanced {
		config.Log.Error("the books do not balance; please report this with the line above")
	}
	return nil
}
