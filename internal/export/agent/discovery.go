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
	// discoveryPause is how long discovery waits before it asks again, after the agent did not answer or
	// wanted no statistics.
	discoveryPause = 10 * time.Second
	// infoTimeout is how long one reading of /info may take.
	infoTimeout = 10 * time.Second
	// maxAgentVersion limits the length of an agent's version.
	maxAgentVersion = 100
)

// errNoStatistics is why an auto-discovered agent is not found although its address answers.
var errNoStatistics = errors.New("the server that answers takes no statistics")

// discovery asks the agent what it wants. It reads /info until that has succeeded once; again when the
// agent's state changes or a payload is not answered, since another agent may have replaced it; and every
// discoveryPause while statistics are not wanted, because an agent can be upgraded under a running daemon.
// An auto-discovered agent is found when it says that it wants them.
type discovery struct {
	log    *slog.Logger
	client client
	url    URL

	joined    atomic.Bool // it is configured, or found
	features  *featureStore
	info      atomic.Pointer[info]   // as it was last read
	lastState atomic.Pointer[string] // of the agent, by an answer
	changed   chan struct{}          // holds a token when /info must be read

	// Used only by the goroutine of watch.
	failures int  // to read /info, in a row
	isLogged bool // the log says that the agent answers
}

func newDiscovery(log *slog.Logger, c client, url URL, lookedFor bool) *discovery {
	d := &discovery{
		log: log, client: c, url: url,
		features: newFeatureStore(DefaultFeatures()), changed: make(chan struct{}, 1),
	}
	d.info.Store(&info{})
	d.lastState.Store(new(string))
	d.joined.Store(!lookedFor)
	return d
}

// watch asks the agent what it wants, until its context ends.
func (d *discovery) watch(ctx context.Context, link *export.Link) {
	for d.await(ctx, link, d.readInfo(ctx, link)) {
	}
}

// await returns true when /info must be read, and false at the end. known reports whether the last reading
// succeeded.
func (d *discovery) await(ctx context.Context, link *export.Link, known bool) bool {
	var again <-chan time.Time
	if !known || !d.wantsStatistics() {
		again = time.After(discoveryPause)
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-again:
			return true
		case <-link.Lost():
		case <-d.changed:
		}
		if d.wantsStatistics() {
			return true
		}
		// A downgrade was just seen on an answer. Asking at once would find
		// the same agent that said so.
		if again == nil {
			again = time.After(discoveryPause)
		}
	}
}

// readInfo asks the agent once and publishes its features.
func (d *discovery) readInfo(ctx context.Context, link *export.Link) bool {
	asking, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	said, err := d.client.info(asking)
	if err == nil && !said.features.Stats && !d.joined.Load() {
		err = errNoStatistics
	}
	if err != nil {
		if ctx.Err() == nil {
			link.Silent()
			d.failed(err)
		}
		return false
	}
	if d.failures > 0 {
		link.Returned()
	} else {
		link.Answers()
	}
	d.failures = 0
	if !d.isLogged {
		d.isLogged = true
		says := "agent answers"
		if !d.joined.Load() {
			says = "agent found; statistics go there from now on"
		}
		d.log.Info(says, "agent", d.url.String(),
			"agent_version", said.version, "takes_statistics", said.features.Stats)
	}
	d.info.Store(&said)
	d.publish(func(Features) Features { return said.features })
	d.joined.Store(true)
	return true
}

// failed records that the agent did not answer. An agent that was never there is the commonest mistake of a
// new installation, and without traffic nothing else would show it, so it is logged; other failures show
// with payloads. It is logged at the second failure, because daemon and agent often start together. An
// auto-discovered agent that is not there is no mistake.
func (d *discovery) failed(err error) {
	d.failures++
	if d.failures != 2 || d.isLogged || !d.joined.Load() {
		d.log.Debug("agent info is not to be had", "agent", d.url.String(), "error", err)
		return
	}
	d.log.Warn("agent does not answer; is it running, and is --agent-url where it listens? "+
		"Until it does, payloads are kept for --retry-age", "agent", d.url.String(), "error", err)
}

// downgrade publishes that this agent has no statistics endpoint. Discovery finds out when it gets one.
func (d *discovery) downgrade() {
	d.publish(func(now Features) Features { now.Stats = false; return now })
	d.lookAgain()
}

// publish changes the features, and logs when statistics begin or cease to be wanted.
func (d *discovery) publish(edit func(Features) Features) {
	before, after := d.features.change(edit)
	switch {
	case before.Stats && !after.Stats:
		d.log.Warn("agent takes no statistics: downgraded; looking again every " + discoveryPause.String())
	case !before.Stats && after.Stats:
		d.log.Info("agent takes statistics again")
	}
}

// noticeState has /info read when a response to a payload shows that the agent's configuration has changed.
// Behind a proxy that rewrites /info its state and that of responses never agree, so each state counts
// once.
func (d *discovery) noticeState(state string) {
	if state == "" || *d.lastState.Swap(&state) == state {
		return
	}
	if state != d.info.Load().state {
		d.lookAgain()
	}
}

// lookAgain makes discovery read /info.
func (d *discovery) lookAgain() {
	select {
	case d.changed <- struct{}{}:
	default: // it is about to
	}
}

// version is what the agent last called itself.
func (d *discovery) version() string { return span.Text(d.info.Load().version, maxAgentVersion) }

// wantsStatistics reports whether the agent takes statistics at present.
func (d *discovery) wantsStatistics() bool {
	now, _ := d.features.load()
	return now.Stats
}

// wants is what export.Exporter has of it.
func (d *discovery) wants() (statistics bool, payloadBytes int) {
	now, _ := d.features.load()
	return now.Stats, now.MaxRequestBytes
}

// info is what was read of the agent's /info.
type info struct {
	features Features
	state    string // what the agent's Datadog-Agent-State header says of this body
	version  string // of the agent
}

// parseInfo reads the body of /info.
func parseInfo(body []byte) (info, error) {
	var said struct {
		Features
		Version         string     `json:"version"`
		Endpoints       []string   `json:"endpoints"`
		FilterTags      tagFilters `json:"filter_tags"`
		FilterTagsRegex tagFilters `json:"filter_tags_regex"`
		Config          struct {
			MaxRequestBytes int `json:"max_request_bytes"`
		} `json:"config"`
	}
	// Null means that the agent computes none by kind; one that does not know the
	// field computes them, as tracers assume too.
	said.SpanKinds = slices.Clone(defaultSpanKinds)
	if err := json.Unmarshal(body, &said); err != nil {
		return info{}, fmt.Errorf("read agent info: %w", err)
	}
	slices.Sort(said.SpanKinds) // which the agent lists in random order
	said.Stats = slices.Contains(said.Endpoints, "/v0.6/stats")
	said.FiltersTags = said.FilterTags.any() || said.FilterTagsRegex.any()
	said.Features.MaxRequestBytes = max(0, said.Config.MaxRequestBytes)
	sum := sha256.Sum256(body)
	return info{features: said.Features, state: hex.EncodeToString(sum[:]), version: said.Version}, nil
}

// tagFilters are the tags that a trace's root must or must not have.
type tagFilters struct {
	Require []string `json:"require"`
	Reject  []string `json:"reject"`
}

func (f tagFilters) any() bool { return len(f.Require)+len(f.Reject) > 0 }

// Features are what the agent wants of statistics. A field with a JSON name is that field of its /info.
type Features struct {
	Stats              bool     `json:"-"` // whether it wants any
	PeerTags           []string `json:"peer_tags"`
	SpanKinds          []string `json:"span_kinds_stats_computed"`
	IgnoreResources    []string `json:"ignore_resources"`
	FiltersTags        bool     `json:"-"`               // it leaves out traces by their roots' tags
	DropsP0s           bool     `json:"client_drop_p0s"` // it needs none that sampling threw away
	ObfuscationVersion uint64   `json:"obfuscation_version"`
	MaxRequestBytes    int      `json:"-"` // what it refuses to read beyond, 0 if it did not say
}

// DefaultFeatures are those of an agent with its default configuration. They apply until it has been asked,
// so that a tracer that starts before the agent loses nothing.
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

// featureStore holds the features, with a channel that is closed when they have changed. One goroutine at a
// time changes them; any goroutine reads them.
type featureStore struct {
	mu         sync.Mutex
	features   Features
	superseded chan struct{}
}

func newFeatureStore(f Features) *featureStore {
	return &featureStore{features: f, superseded: make(chan struct{})}
}

// change replaces the features by what edit returns. The channel is closed only if they differ.
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
