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

	isAutoDiscovered bool // the operator has not configured the agent

	isAgentKnown atomic.Bool // the agent is configured, or was found; no statistics are sent before
	features     *featureStore
	lastInfo     atomic.Pointer[agentInfo] // last response of /info
	lastState    atomic.Pointer[string]    // Datadog-Agent-State header of the last response to a payload
	readRequests chan struct{}             // holds a token when /info must be read

	// Used only by the goroutine of watch.
	failures    int  // consecutive failures to read /info
	hasAnswered bool // a read of /info has succeeded
}

// newDiscovery returns a discovery, which reads the features of the agent at url, for example whether it
// accepts statistics. Until the agent answers, the discovery assumes DefaultFeatures. If isAutoDiscovered is true, no
// statistics are sent before the agent has answered that it accepts them.
func newDiscovery(log *slog.Logger, c client, url URL, isAutoDiscovered bool) *discovery {
	d := &discovery{
		log:              log,
		client:           c,
		url:              url,
		isAutoDiscovered: isAutoDiscovered,
		features:         newFeatureStore(DefaultFeatures()),
		readRequests:     make(chan struct{}, 1),
	}
	d.isAgentKnown.Store(!isAutoDiscovered)
	d.lastInfo.Store(&agentInfo{})
	d.lastState.Store(new(string))
	return d
}

// watch reads /info until ctx ends, at the times that the comment of discovery describes.
func (d *discovery) watch(ctx context.Context, link *export.Link) {
	for ctx.Err() == nil {
		succeeded := d.readInfo(ctx, link)
		d.waitForNextRead(ctx, link, succeeded)
	}
}

// waitForNextRead returns when the agent's /info should be read again, or when ctx ends. If the agent accepts
// statistics, it waits for an event that waitForReasonToRead describes. Otherwise it waits for discoveryPause.
func (d *discovery) waitForNextRead(ctx context.Context, link *export.Link, lastReadOK bool) {
	if d.acceptsStatistics() {
		d.waitForReasonToRead(ctx, link, lastReadOK)
	}
	// The agent can have refused statistics during the wait. An immediate read of /info would only confirm that.
	if !d.acceptsStatistics() {
		sleep(ctx, discoveryPause)
	}
}

// waitForReasonToRead returns when a payload gets no response, when requestRead is called, or when ctx ends. If the last
// read of /info has failed (lastReadOK is false), it returns after discoveryPause at the latest.
func (d *discovery) waitForReasonToRead(ctx context.Context, link *export.Link, lastReadOK bool) {
	if !lastReadOK {
		withTimeout, cancel := context.WithTimeout(ctx, discoveryPause)
		defer cancel()
		ctx = withTimeout
	}
	select {
	case <-ctx.Done():
	case <-link.Lost():
	case <-d.readRequests:
	}
}

// sleep returns after pause, or earlier if ctx ends.
func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// readInfo requests the agent's /info once, and stores the response. It records in link whether the agent has
// responded. It returns false if requestInfo returns an error.
func (d *discovery) readInfo(ctx context.Context, link *export.Link) (succeeded bool) {
	info, err := d.requestInfo(ctx)
	if err != nil {
		isShutdown := ctx.Err() != nil
		if !isShutdown {
			link.SetSilent()
			d.recordFailure(err)
		}
		return false
	}
	if d.failures > 0 {
		d.failures = 0
		link.SetRecovered()
	} else {
		link.SetReachable()
	}
	d.storeInfo(&info)
	return true
}

// storeInfo stores a response of /info and the features in it. If it is the first response, storeInfo logs it. An
// auto-discovered agent gets statistics from then on.
func (d *discovery) storeInfo(info *agentInfo) {
	if !d.hasAnswered {
		d.hasAnswered = true
		d.logFirstAnswer(info)
	}
	d.lastInfo.Store(info)
	d.updateFeatures(func(Features) Features { return info.features })
	d.isAgentKnown.Store(true)
}

// requestInfo requests the agent's /info once, with a timeout. Until an auto-discovered agent is found, it returns
// an error if the server does not accept statistics, because the server may not be an agent.
func (d *discovery) requestInfo(ctx context.Context) (agentInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := d.client.readInfo(ctx)
	if err != nil {
		return agentInfo{}, err
	}
	isKnownAgent := d.isAgentKnown.Load()
	if !isKnownAgent && !info.features.Stats {
		return agentInfo{}, errNoStatistics
	}
	return info, nil
}

// logFirstAnswer logs that the agent has answered for the first time.
func (d *discovery) logFirstAnswer(info *agentInfo) {
	message := "the agent responds"
	if !d.isAgentKnown.Load() {
		message = "found an agent; sending statistics to it"
	}
	d.log.Info(message, "agent", d.url.String(),
		"agent_version", info.version, "accepts_statistics", info.features.Stats)
}

// failuresToWarn is the number of failures after which recordFailure warns. It is more than one,
// because daemon and agent often start together.
const failuresToWarn = 2

// recordFailure counts and logs a failed read of the agent's /info. After failuresToWarn failures, it logs a warning
// if the operator has configured the address of the agent, and the agent has never answered: the address is probably
// wrong. It logs all other failures at debug level.
func (d *discovery) recordFailure(err error) {
	d.failures++
	isAddressDoubtful := !d.isAutoDiscovered && !d.hasAnswered
	if isAddressDoubtful && d.failures == failuresToWarn {
		d.log.Warn("the agent does not respond; check that it is running, and --agent-url. Payloads are queued "+
			"for --retry-age", "agent", d.url.String(), "error", err)
		return
	}
	d.log.Debug("can't read the agent's /info", "agent", d.url.String(), "error", err)
}

// disableStatistics records that this agent has no endpoint for statistics, and requests a read of /info.
func (d *discovery) disableStatistics() {
	d.updateFeatures(func(f Features) Features {
		f.Stats = false
		return f
	})
	d.requestRead()
}

// updateFeatures replaces the stored features of the agent by the result of edit, which is called with the stored
// ones. It logs a message if the agent now accepts statistics and did not before, or the other way round.
func (d *discovery) updateFeatures(edit func(Features) Features) {
	old, current := d.features.update(edit)
	switch {
	case old.Stats && !current.Stats:
		d.log.Warn("the agent does not accept statistics; checking again every " + discoveryPause.String())
	case !old.Stats && current.Stats:
		d.log.Info("the agent accepts statistics again")
	}
}

// noticeState requests a read of the agent's /info if its content has changed. state is the Datadog-Agent-State header
// of a response: the agent's hash of the content of /info.
func (d *discovery) noticeState(state string) {
	if state == "" {
		return
	}
	previous := d.lastState.Swap(&state)
	isRepeated := state == *previous
	if isRepeated { // one read per state is enough; behind a proxy that modifies /info, no read would return this state
		return
	}
	wasRead := state == d.lastInfo.Load().state
	if !wasRead {
		d.requestRead()
	}
}

// requestRead makes the goroutine of watch read /info soon.
func (d *discovery) requestRead() {
	select {
	case d.readRequests <- struct{}{}:
	default: // already requested
	}
}

// version returns the version that the agent last reported.
func (d *discovery) version() string { return span.Text(d.lastInfo.Load().version, maxAgentVersion) }

// acceptsStatistics reports whether the agent currently accepts statistics.
func (d *discovery) acceptsStatistics() bool { return d.features.load().Stats }

// payloadLimit returns the maximum length of a request that the agent has reported, or 0 if it has reported none.
func (d *discovery) payloadLimit() int { return d.features.load().MaxRequestBytes }

// agentInfo is the relevant content of the agent's /info.
type agentInfo struct {
	features Features
	state    string // the Datadog-Agent-State header that corresponds to this content
	version  string // version of the agent
}

// parseInfo parses a response of /info. It returns an error if body is not valid JSON.
func parseInfo(body []byte) (agentInfo, error) {
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
	// An agent whose /info lacks the list of span kinds computes statistics for the default kinds. A list that is
	// null or empty means no kinds.
	parsed.SpanKinds = slices.Clone(defaultSpanKinds)
	if err := json.Unmarshal(body, &parsed); err != nil {
		return agentInfo{}, fmt.Errorf("read agent info: %w", err)
	}
	features := parsed.Features
	slices.Sort(features.SpanKinds) // the agent lists them in random order
	features.Stats = slices.Contains(parsed.Endpoints, "/v0.6/stats")
	features.FiltersTags = parsed.FilterTags.hasAny() || parsed.FilterTagsRegex.hasAny()
	features.MaxRequestBytes = max(0, parsed.Config.MaxRequestBytes)
	state := sha256.Sum256(body)
	return agentInfo{features: features, state: hex.EncodeToString(state[:]), version: parsed.Version}, nil
}

// tagFilters are tags that the root of a trace must have, or must not have.
type tagFilters struct {
	Require []string `json:"require"`
	Reject  []string `json:"reject"`
}

func (f tagFilters) hasAny() bool { return len(f.Require)+len(f.Reject) > 0 }

// Features are the agent's requirements for statistics. The JSON names are those of /info.
type Features struct {
	Stats              bool     `json:"-"` // accepts statistics
	PeerTags           []string `json:"peer_tags"`
	SpanKinds          []string `json:"span_kinds_stats_computed"`
	IgnoreResources    []string `json:"ignore_resources"`
	FiltersTags        bool     `json:"-"`               // ignores traces depending on the tags of their roots
	DropsP0s           bool     `json:"client_drop_p0s"` // whether the agent does not need unsampled traces
	ObfuscationVersion uint64   `json:"obfuscation_version"`
	MaxRequestBytes    int      `json:"-"` // maximum length of a payload; 0 if unknown
}

// DefaultFeatures returns the features of an agent with its default configuration. The daemon uses them until the
// agent has answered, so that it can count the spans that it receives before that.
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

// featureStore contains the features, and a channel that is closed when they change. It is safe for concurrent
// use.
type featureStore struct {
	mu       sync.Mutex
	features Features
	changed  chan struct{} // closed and replaced when the features change
}

func newFeatureStore(f Features) *featureStore {
	return &featureStore{features: f, changed: make(chan struct{})}
}

// update replaces the stored features by the result of edit, which is called with the stored ones. It returns the
// features before and after the call. If they differ, it closes the channels that watch has returned.
func (s *featureStore) update(edit func(Features) Features) (old, current Features) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old = s.features
	current = edit(old)
	if !reflect.DeepEqual(old, current) {
		s.features = current
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return old, current
}

// load returns the current features.
func (s *featureStore) load() Features {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.features
}

// watch returns the current features, and a channel that is closed when they change.
func (s *featureStore) watch() (current Features, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.features, s.changed
}
