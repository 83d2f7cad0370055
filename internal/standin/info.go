package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
)

// Info is what GET /info says, in the agent's own form.
type Info struct {
	Version            string     `json:"version"`
	Endpoints          []string   `json:"endpoints"`
	ClientDropP0s      bool       `json:"client_drop_p0s"`
	PeerTags           []string   `json:"peer_tags"`
	SpanKinds          []string   `json:"span_kinds_stats_computed"`
	IgnoreResources    []string   `json:"ignore_resources,omitempty"`
	ObfuscationVersion int        `json:"obfuscation_version"`
	Config             InfoConfig `json:"config"`
}

// InfoConfig is the part of /info that shows the agent's configuration.
type InfoConfig struct {
	DefaultEnv      string `json:"default_env"`
	MaxRequestBytes int    `json:"max_request_bytes"`
}

// maxRequestBytes is what the agent reads of a body.
const maxRequestBytes = 25 << 20

// agentVersion is the release whose behaviour this package follows.
const agentVersion = "7.85.1"

// DefaultInfo is what an agent says that nobody has configured.
func DefaultInfo() Info {
	return Info{
		Version:            agentVersion,
		Endpoints:          append([]string{"/v0.6/stats", "/info"}, tracePaths...),
		ClientDropP0s:      true,
		PeerTags:           slices.Clone(peerTags),
		SpanKinds:          []string{"server", "consumer", "client", "producer"},
		ObfuscationVersion: 1,
		Config:             InfoConfig{DefaultEnv: "none", MaxRequestBytes: maxRequestBytes},
	}
}

// render is the body of /info, and the state header that goes with it.
func (i Info) render() (body []byte, state string) {
	body, err := json.MarshalIndent(i, "", "\t")
	if err != nil {
		panic("BUG: info: " + err.Error()) // strings, numbers and lists of them
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:])
}

// say writes the headers of every answer.
func (i *Info) say(h http.Header) {
	_, state := i.render()
	h.Set("Datadog-Agent-Version", i.Version)
	h.Set("Datadog-Agent-State", state)
}

var peerTags = []string{
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

// serves says whether the agent has an endpoint.
func (i *Info) serves(path string) bool { return slices.Contains(i.Endpoints, path) }
