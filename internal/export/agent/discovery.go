package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// discoveryPause is the interval between requests for /info while the agent does not answer or does
	// not accept statistics.
	discoveryPause = 10 * time.Second
	// infoTimeout is the timeout of a request for /info.
	infoTimeout = 10 * time.Second
	// maxAgentVersion limits the length of an agent's version.
	maxAgentVersion = 100
)

// errNoStatistics means that a server answers at the address of an auto-discovered agent, but does
// not accept statistics.
var errNoStatistics = errors.New("the server that answers does not accept statistics")

// discovery reads the features of the agent from its /info endpoint:
//
//   - every discoveryPause, until a read has succeeded, and while the agent does not accept
//     statistics, because it may be upgraded
//   - when the agent's state changes, or a payload is not answered, because another agent may have
//     replaced it
//
// An auto-discovered agent becomes a destination when it accepts statistics for the first time.
type discovery struct {
	log    *slog.Logger
	client client
	url    URL

	isDestination atomic.Bool // the agent is a destination: it is configured, or was found
	features      *featureStore
	info          atomic.Pointer[info]   // last response of /info
	lastState     atomic.Pointer[string] // state of the agent in the last response to a payload
	readRequests  chan struct{}          // holds a token when /info must be read

	// Used only by the goroutine of watch.
	failures int  // consecutive failures to read /info
	isLogged bool // the log has a line that the agent answers
}

// newDiscovery returns a discovery for an agent. The default features apply until /info has been
// read. isAutoDiscovered is false if the operator has configured the agent.
func newDiscovery(log *slog.Logger, c client, url URL, isAutoDiscovered bool) *discovery {
	d := &discovery{
		log: log, client: c, url: url,
		features: newFeatureStore(DefaultFeatures()), readRequests: make(chan struct{}, 1),
	}
	d.info.Store(&info{})
	d.lastState.Store(new(string))
	d.isDestination.Store(!isAutoDiscovered) // a configured agent is a destination before it answers
	return d
}

// watch reads /info whenever necessary, until ctx ends.
func (d *discovery) watch(ctx context.Context, link *export.Link) {
	for d.await(ctx, link, d.readInfo(ctx, link)) {
	}
}

// await waits until /info should be read again, and returns true, or false when ctx ends. lastReadOK
// reports whether the last read succeeded. See discovery for the times of reads.
func (d *discovery) await(ctx context.Context, link *export.Link, lastReadOK bool) bool {
	var retry <-chan time.Time
	if !lastReadOK || !d.wantsStatistics() {
		retry = time.After(discoveryPause)
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-retry:
			return true
		case <-link.Lost():
		case <-d.readRequests:
		}
		if d.wantsStatistics() {
			return true
		}
		// The agent has just rejected a payload, because it does not accept statistics. Reading /info
		// immediately would only confirm this.
		if retry == nil {
			retry = time.After(discoveryPause)
		}
	}
}

// readInfo reads /info once and publishes the agent's features. It reports whether the agent
// answered and, if it is auto-discovered, accepts statistics.
func (d *discovery) readInfo(ctx context.Context, link *export.Link) bool {
	infoCtx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := d.client.info(infoCtx)
	if err == nil && !info.features.Stats && !d.isDestination.Load() {
		err = errNoStatistics
	}
	if err != nil {
		if ctx.Err() == nil {
			link.SetSilent()
			d.recordFailure(err)
		}
		return false
	}
	if d.failures > 0 {
		link.SetRecovered()
	} else {
		link.SetReachable()
	}
	d.failures = 0
	if !d.isLogged {
		d.isLogged = true
		message := "the agent responds"
		if !d.isDestination.Load() {
			message = "found an agent; sending statistics to it"
		}
		d.log.Info(message, "agent", d.url.String(),
			"agent_version", info.version, "accepts_statistics", info.features.Stats)
	}
	d.info.Store(&info)
	d.publish(func(Features) Features { return info.features })
	d.isDestination.Store(true)
	return true
}

// failuresToWarn is the number of failures after which recordFailure warns. It is more than one,
// because daemon and agent often start together.
const failuresToWarn = 2

// recordFailure records that the agent did not answer. It warns, once, if a configured agent has
// never answered: the most common mistake in a new installation, and invisible without traffic. All
// other failures become visible through payloads, or are normal for an auto-discovered agent.
func (d *discovery) recordFailure(err error) {
	d.failures++
	if d.failures != failuresToWarn || d.isLogged || !d.isDestination.Load() {
		d.log.Debug("can't read the agent's /info", "agent", d.url.String(), "error", err)
		return
	}
	d.log.Warn("the agent does not respond; check that it is running, and --agent-url. Payloads are queued "+
		"for --retry-age", "agent", d.url.String(), "error", err)
}

// downgrade records that this agent has no endpoint for statistics, and requests a read of /info.
func (d *discovery) downgrade() {
	d.publish(func(now Features) Features { now.Stats = false; return now })
	d.requestRead()
}

// publish changes the features, and logs when the agent begins or ceases to accept statistics.
func (d *discovery) publish(edit func(Features) Features) {
	before, after := d.features.change(edit)
	switch {
	case before.Stats && !after.Stats:
		d.log.Warn("the agent does not accept statistics; checking again every " + discoveryPause.String())
	case !before.Stats && after.Stats:
		d.log.Info("the agent accepts statistics again")
	}
}

// noticeState triggers a request for /info if a response to a payload shows that the agent's
// configuration has changed. If a proxy rewrites /info, the state of /info always differs from that
// of responses, so each state triggers only one request.
func (d *discovery) noticeState(state string) {
	if state == "" || *d.lastState.Swap(&state) == state {
		return
	}
	if state != d.info.Load().state {
		d.requestRead()
	}
}

// requestRead makes discovery read /info.
func (d *discovery) requestRead() {
	select {
	case d.readRequests <- struct{}{}:
	default: // already requested
	}
}

// version returns the version that the agent last reported.
func (d *discovery) version() string { return span.Text(d.info.Load().version, maxAgentVersion) }

// wantsStatistics reports whether the agent currently accepts statistics.
func (d *discovery) wantsStatistics() bool {
	now, _ := d.features.load()
	return now.Stats
}

// wants implements export.Exporter.Wants.
func (d *discovery) wants() (statistics bool, payloadBytes int) {
	now, _ := d.features.load()
	return now.Stats, now.MaxRequestBytes
}

// info is the relevant content of the agent's /info.
type info struct {
	features Features
	state    string // the Datadog-Agent-State header that corresponds to this content
	version  string // of the agent
}

// parseInfo parses a response of /info.
func parseInfo(body []byte) (info, error) {
	var parsed struct {
		Features
		Version         string     `json:"version"`
		Endpoints       []string   `json:"endpoints"`
		FilterTags      tagFilters `json:"filter_tags"`
		FilterTagsRegex tagFilters `json:"filter_tags_regex"`
		Config          struct {
			MaxRequestBytes int `json:"max_request_bytes"`
		} `json:"config"`
	}
	// If the field is missing, the agent computes statistics for the default kinds, as tracers assume, too.
	// If it is null, for none.
	parsed.SpanKinds = slices.Clone(defaultSpanKinds)
	if err := json.Unmarshal(body, &parsed); err != nil {
		return info{}, fmt.Errorf("read agent info: %w", err)
	}
	slices.Sort(parsed.SpanKinds) // the agent lists them in random order
	parsed.Stats = slices.Contains(parsed.Endpoints, "/v0.6/stats")
	parsed.FiltersTags = parsed.FilterTags.any() || parsed.FilterTagsRegex.any()
	parsed.Features.MaxRequestBytes = max(0, parsed.Config.MaxRequestBytes)
	sum := sha256.Sum256(body)
	return info{features: parsed.Features, state: hex.EncodeToString(sum[:]), version: parsed.Version}, nil
}

// tagFilters are tags that the root of a trace must have, or must not have.
type tagFilters struct {
	Require []string `json:"require"`
	Reject  []string `json:"reject"`
}

func (f tagFilters) any() bool { return len(f.Require)+len(f.Reject) > 0 }

// Features are the agent's requirements for statistics. The JSON names are those of /info.
type Features struct {
	Stats              bool     `json:"-"` // accepts statistics
	PeerTags           []string `json:"peer_tags"`
	SpanKinds          []string `json:"span_kinds_stats_computed"`
	IgnoreResources    []string `json:"ignore_resources"`
	FiltersTags        bool     `json:"-"`               // ignores traces depending on the tags of their roots
	DropsP0s           bool     `json:"client_drop_p0s"` // does not need unsampled traces
	ObfuscationVersion uint64   `json:"obfuscation_version"`
	MaxRequestBytes    int      `json:"-"` // maximum length of a payload; 0 if unknown
}

// DefaultFeatures returns the features of an agent with its default configuration. They apply
// before the agent has answered, so that spans of a tracer that starts before the agent are
// counted.
func DefaultFeatures() Features {
	return Features{
		Stats:     true,
		PeerTags:  slices.Clone(defaultPeerTags),
		SpanKinds: slices.Clone(defaultSpanKinds),
	}
}

var defaultSpanKinds = []string{"client", "consumer", "producer", "server"}

var defaultPeerTags = []string{
	"_dd.base_service", "active_record.db.vendor", "amqp.destination", "amqp.exchange", "amqp.queue",
	"aws.queue.name", "aws.s3.bucket", "bucketname", "cassandra.keyspace", "db.cassandra.contact.points",
	"db.couchbase.seed.nodes", "db.hostname", "db.instance", "db.name", "db.namespace", "db.system",
	"db.system.name", "db.type", "dns.hostname", "grpc.host", "hostname", "http.host", "http.server_name",
	"messaging.destination", "messaging.destination.name", "messaging.kafka.bootstrap.servers",
	"messaging.rabbitmq.exchange", "messaging.system", "mongodb.db", "msmq.queue.path", "net.peer.name",
	"network.destination.ip", "network.destination.name", "out.host", "peer.hostname", "peer.service",
	"queuename", "rpc.service", "rpc.system", "sequel.db.vendor", "server.address", "streamname",
	"tablename", "topicname",
}

// featureStore contains the features, and a channel that is closed when they change. Any goroutine
// can read them; only one changes them at a time.
type featureStore struct {
	mu         sync.Mutex
	features   Features
	superseded chan struct{}
}

func newFeatureStore(f Features) *featureStore {
	return &featureStore{features: f, superseded: make(chan struct{})}
}

// change replaces the features by the result of edit. It closes the channel only if they differ.
func (s *featureStore) change(edit func(Features) Features) (before, after Features) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after = s.features, edit(s.features)
	if !reflect.DeepEqual(after, before) {
		s.features = after
		close(s.superseded)
		s.superseded = make(chan struct{})
	}
	return before, s.features
}

func (s *featureStore) load() (Features, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.features, s.superseded
}
