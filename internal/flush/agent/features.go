package agent

import (
	"reflect"
	"slices"
	"sync"
)

// Features is what the agent wants of statistics. A field with a JSON name is that field
// of its /info.
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
