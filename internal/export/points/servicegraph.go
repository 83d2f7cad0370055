package points

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// ServiceGraph derives the edges of a service graph from keys: which service calls which. Each span
// belongs to one edge at most, that of its caller's side, so no pair of spans has to be matched:
//
//	client, producer  from the service of the span to the peer that its labels name
//	consumer          from the topic or queue to the service of the span
//	server            from "user" to the service, if the span is the root of its trace
//
// Other spans have no edge: the edge of a server's span is the one of its client's span.
type ServiceGraph struct {
	// Names maps host names and addresses to the names of nodes. A host name that begins with "*."
	// stands for all host names that end with the rest.
	Names map[string]string
	// Instance identifies the daemon in the resource of the edges, because several daemons can have equal
	// edges. It is for OTLP only, since Prometheus adds the instance itself. If it is empty, the edges have no
	// resource.
	Instance string
}

// The names of the metrics of the service graph.
const (
	GraphRequests        = "traces_service_graph_request_total"
	GraphFailures        = "traces_service_graph_request_failed_total"
	GraphClientDurations = "traces_service_graph_request_client_seconds"
	GraphServerDurations = "traces_service_graph_request_server_seconds" // the same durations, as Grafana queries them
)

// minIdle is the time without requests in which an edge is not removed for a new one. So a flood of new nodes, such as
// random host names, does not end the edges of other services.
const minIdle = 5 * time.Minute

// EdgeLimits returns the limits of running totals for the edges of a service graph. l are the limits for series of
// spans.
func EdgeLimits(l totals.Limits, maxEdges int) totals.Limits {
	return totals.Limits{
		Series: maxEdges, Bytes: maxEdges * maxEdgeBytes, Idle: l.Idle, MinIdle: minIdle, Buckets: l.Buckets, Classic: l.Classic,
		Resources: 1, ResourceBytes: maxEdgeBytes,
	}
}

// ParseNodeNames parses ServiceGraph.Names: pairs host=name, separated by commas.
func ParseNodeNames(text string) (map[string]string, error) {
	names := map[string]string{}
	if text == "" {
		return names, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		host, name, hasName := strings.Cut(strings.TrimSpace(pair), "=")
		if !hasName || host == "" || name == "" || len(name) > span.MaxLabel {
			return nil, fmt.Errorf("%q is not host=name; use pairs such as 10.0.0.7=payments,*.rds.amazonaws.com=orders-db",
				pair)
		}
		names[host] = name
	}
	return names, nil
}

// The names of nodes that no label names.
const (
	userNode    = "user"    // callers of a root span
	unknownNode = "unknown" // peers of client spans without peer labels
)

// The values of the label connection_type, as in Grafana Tempo. It is empty for HTTP and RPC.
const (
	connectionMessaging = "messaging_system"
	connectionDatabase  = "database"
	connectionVirtual   = "virtual_node" // from or to a node without spans
)

// maxEdgeBytes is the maximum length of the encoded labels of an edge: two nodes, and the rest.
const maxEdgeBytes = 2*span.MaxLabel + 72

// edge is a connection of the service graph.
type edge struct{ client, server, connection string }

// metrics implements dialect. It returns one metric without a name, because the exporter names the metrics of edges.
func (*ServiceGraph) metrics() []Metric { return make([]Metric, 1) }

// metricOf implements dialect.
func (*ServiceGraph) metricOf(k *span.Key) int {
	if k.Measure == 0 && isEdge(k) {
		return 0
	}
	return noMetric
}

// isEdge reports whether spans with the labels in k belong to an edge.
func isEdge(k *span.Key) bool {
	switch spanKind(k) {
	case spanKinds["client"], spanKinds["producer"], spanKinds["consumer"]:
		return !isReceive(k)
	case spanKinds["server"]:
		return k.TraceRoot == span.TraceRootTrue
	}
	return false
}

// isReceive reports whether k contains the labels of client spans that receive messages. The service
// graph omits these spans, because the span that processes a message is counted instead.
func isReceive(k *span.Key) bool {
	operation := tagOf(k, "messaging.operation.type")
	isSend := operation == "send" || operation == "publish" || operation == "create"
	return spanKind(k) == spanKinds["client"] && operation != "" && !isSend
}

// writeResource implements dialect. The resource of an edge is the daemon, because the edge connects two services.
func (g *ServiceGraph) writeResource(to *attributes, _ *span.Origin, _ string) {
	to.writeDaemon(g.Instance)
}

// writeDaemon writes the attributes of the daemon as a resource. It writes none if instance is empty.
func (a *attributes) writeDaemon(instance string) {
	if instance == "" {
		return
	}
	a.beginList()
	a.addText("service.name", "spanstatsd")
	a.addText("service.instance.id", instance)
}

// writeKey implements dialect.
func (g *ServiceGraph) writeKey(to *attributes, origin *span.Origin, k *span.Key) {
	e := g.edge(serviceName(origin, k), k)
	to.beginList()
	to.addText("client", e.client)
	to.addText("server", e.server)
	to.addText("connection_type", e.connection)
}

// isOK implements dialect. The edges have no status.
func (*ServiceGraph) isOK(*span.Origin, *span.Key) bool { return false }

// writeStatus implements dialect. Spans with and without an error belong to the same series.
func (*ServiceGraph) writeStatus(*attributes, status) {}

// writeOverflow implements dialect.
func (*ServiceGraph) writeOverflow(to *attributes) {
	to.addText("client", span.Blocked)
	to.addText("server", span.Blocked)
}

// edge returns the edge of a span of the given service. The key must be one for which isEdge is true.
func (g *ServiceGraph) edge(service string, k *span.Key) edge {
	switch spanKind(k) {
	case spanKinds["server"]:
		return edge{userNode, service, connectionVirtual}
	case spanKinds["consumer"]:
		return edge{g.topic(k), service, connectionMessaging}
	case spanKinds["producer"]:
		return edge{service, g.topic(k), connectionMessaging}
	}
	switch {
	case tagOf(k, messagingTags...) != "":
		return edge{service, g.topic(k), connectionMessaging}
	case isDatabase(k):
		return edge{service, g.database(k), connectionDatabase}
	}
	return edge{service, g.server(k), ""}
}

// Tags that name a peer, in order of preference: those of OpenTelemetry's conventions, then those of
// Datadog's tracers.
var (
	topicTags = []string{
		"messaging.destination.name", "messaging.destination", "topicname", "queuename", "streamname",
		"aws.queue.name", "amqp.queue", "amqp.exchange", "messaging.rabbitmq.exchange",
	}
	messagingTags = append([]string{"messaging.system"}, topicTags...)
	databaseTags  = []string{"db.namespace", "db.name", "mongodb.db", "cassandra.keyspace", "tablename"}
	systemTags    = []string{"db.system.name", "db.system"}
	rpcTags       = []string{"rpc.service", "grpc.host"}
	addressTags   = []string{
		"server.address", "net.peer.name", "peer.hostname", "out.host", "db.hostname",
		"network.destination.name", "http.hostname", "network.destination.ip",
	}
)

// topic returns the node of the topic or queue that a span sends to or receives from.
func (g *ServiceGraph) topic(k *span.Key) string {
	return cmp.Or(tagOf(k, topicTags...), g.peer(k), tagOf(k, "messaging.system"), unknownNode)
}

// database returns the node of a database: its name, unless that is only a number, as in Redis.
func (g *ServiceGraph) database(k *span.Key) string {
	name := tagOf(k, databaseTags...)
	if isNumber := strings.Trim(name, "0123456789") == ""; isNumber {
		name = ""
	}
	return cmp.Or(tagOf(k, "peer.service"), name, g.peer(k), tagOf(k, systemTags...), k.Type, unknownNode)
}

// server returns the name of the service graph's node that a client span calls: the peer service or
// the host. If this is an IP address or unknown, it returns the RPC service instead. If there is none,
// it returns the IP address, or unknownNode.
func (g *ServiceGraph) server(k *span.Key) string {
	peer := g.peer(k)
	if _, err := netip.ParseAddr(peer); err == nil {
		return cmp.Or(tagOf(k, rpcTags...), peer)
	}
	return cmp.Or(peer, tagOf(k, rpcTags...), unknownNode)
}

// peer returns the name of the service or host that a span calls. It returns a host without its port and Kubernetes
// domain, or the name that the operator has configured for it. It returns "" if the labels in k name neither.
func (g *ServiceGraph) peer(k *span.Key) string {
	if name := tagOf(k, "peer.service"); name != "" {
		return name
	}
	host := withoutPort(tagOf(k, addressTags...))
	if name, isMapped := g.configuredName(host); isMapped {
		return name
	}
	return withoutKubernetesDomain(host)
}

// configuredName returns the configured name of a host.
func (g *ServiceGraph) configuredName(host string) (name string, isMapped bool) {
	if name, isMapped = g.Names[host]; isMapped {
		return name, true
	}
	for domain := host; ; {
		_, rest, hasDot := strings.Cut(domain, ".")
		if !hasDot {
			return "", false
		}
		domain = rest
		if name, isMapped = g.Names["*."+domain]; isMapped {
			return name, true
		}
	}
}

// isDatabase reports whether a client's span calls a database.
func isDatabase(k *span.Key) bool {
	switch k.Type {
	case "sql", "db", "redis", "memcached", "mongodb", "cassandra", "elasticsearch", "opensearch", "cache":
		return true
	}
	return tagOf(k, systemTags...) != "" || tagOf(k, databaseTags...) != ""
}

// tagOf returns the value of the first of the named tags that a key has, or "".
func tagOf(k *span.Key, names ...string) string {
	for _, name := range names {
		for _, tags := range [...][]string{k.PeerTags, k.AdditionalTags} {
			for _, tag := range tags {
				key, value, _ := strings.Cut(tag, ":")
				if value != "" && (key == name || attributeName(key) == name) {
					return value
				}
			}
		}
	}
	return ""
}

// withoutPort returns an address without its port, and without the brackets of an IPv6 address.
func withoutPort(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return strings.Trim(address, "[]")
}

// withoutKubernetesDomain returns the name of a Kubernetes service for its DNS name, for example
// "cart" for cart.shop.svc.cluster.local, and "db" for the pod db-0.db.shop.svc. It returns other host
// names as they are, without a final dot.
func withoutKubernetesDomain(host string) string {
	host = strings.TrimSuffix(host, ".")
	labels := strings.Split(host, ".") // [pod] service namespace "svc" [domain of the cluster]
	for i := 2; i < len(labels); i++ {
		if labels[i] == "svc" {
			return labels[i-2] // the service
		}
	}
	return host
}
