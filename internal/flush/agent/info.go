package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/flush/request"
)

// info is one reading of the agent's GET /info.
type info struct {
	features Features
	state    string // what the agent's Datadog-Agent-State header says of this body
	version  string // of the agent
}

// maxInfoBytes bounds what is read of /info; a real one has some 4 KB.
const maxInfoBytes = 1 << 20

// info asks the agent what it wants. An agent without /info is old enough to
// have no statistics endpoint either, which is an answer and no error.
func (h *httpAgent) info(ctx context.Context) (info, error) {
	req, err := h.request(ctx, http.MethodGet, "/info")
	if err != nil {
		return info{}, err
	}
	resp, err := h.unasked.RoundTrip(req)
	if err != nil {
		return info{}, fmt.Errorf("read agent info: %w", err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return info{}, nil
	default:
		return info{}, fmt.Errorf("read agent info: %w", responseError(resp.Status, request.Said(resp)))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxInfoBytes+1))
	switch {
	case err != nil:
		return info{}, fmt.Errorf("read agent info: %w", err)
	case len(body) > maxInfoBytes:
		return info{}, errors.New("read agent info: more than 1 MiB; is this an agent?")
	}
	return parseInfo(body)
}

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

// Features is what the agent wants of statistics. A field with a JSON name is that field
// of its /info.
type Features struct {
	Stats              bool     `json:"-"` // whether it wants any
	PeerTags           []string `json:"peer_tags"`
	SpanKinds          []string `json:"span_kinds_stats_computed"`
	IgnoreResources    []string `json:"ignore_resources"`
	FiltersTags        bool     `json:"-"`               // it leaves out traces by their roots' tags
	DropsP0s           bool     `json:"client_drop_p0s"` // it needs no traces that a tracer's sampling threw away
	ObfuscationVersion uint64   `json:"obfuscation_version"`
	MaxRequestBytes    int      `json:"-"` // what it refuses to read beyond, 0 if it did not say
}

// DefaultFeatures are those of the agent as it is shipped. They hold until it
// has been asked, so that a tracer that starts before the agent loses nothing.
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

// featureStore holds the features, with a channel that is closed when they are out
// of date. One goroutine at a time changes them and any reads.
type featureStore struct {
	mu         sync.Mutex
	features   Features
	superseded chan struct{}
}

func newFeatureStore(f Features) *featureStore {
	return &featureStore{features: f, superseded: make(chan struct{})}
}

// change replaces the features by what edit makes of them. Who waits is told only
// where they differ.
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

// Features is what the agent wants at present. It is not to be written to.
func (e *Exporter) Features() Features {
	now, _ := e.features.load()
	return now
}

// WatchFeatures returns the features and a channel that is closed as soon as
// they are no longer the present ones.
func (e *Exporter) WatchFeatures() (Features, <-chan struct{}) { return e.features.load() }
