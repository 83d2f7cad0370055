package otel

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/semconv"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// metricTag is an attribute of a metric that becomes a peer tag.
type metricTag struct {
	name   string
	labels []spantable.Label // labels of the attribute and of its other names, in order of preference
}

// otherNames contains older names of the attributes of metrics, and one newer name, in order of preference.
var otherNames = map[string][]string{
	"http.request.method":      {"http.method"},
	"url.scheme":               {"http.scheme"},
	"network.protocol.name":    {"net.protocol.name"},
	"network.protocol.version": {"net.protocol.version", "http.flavor"},
	"server.address":           {"net.peer.name"},
	"server.port":              {"net.peer.port"},
	"network.peer.address":     {"net.sock.peer.addr"},
	"network.peer.port":        {"net.sock.peer.port"},

	"rpc.system.name":    {"rpc.system"},
	rpcStatusName:        {"rpc.status_code", "rpc.connect_rpc.error_code", "rpc.jsonrpc.error_code"}, // the first since 1.45
	"db.system.name":     {"db.system"},
	"db.namespace":       {"db.name"},
	"db.operation.name":  {"db.operation"},
	"db.collection.name": {"db.sql.table"},

	"messaging.operation.type":           {"messaging.operation"},
	"messaging.destination.name":         {"messaging.destination"},
	"messaging.consumer.group.name":      {"messaging.consumer.group", "messaging.kafka.consumer.group"},
	"messaging.destination.partition.id": {"messaging.kafka.destination.partition"},

	"gen_ai.provider.name": {"gen_ai.system"},
}

// rpcStatusName is an attribute that is a field of a key if it is the status of a gRPC call.
const rpcStatusName = "rpc.response.status_code"

// fieldAttributes are the attributes of metrics that are fields of a key.
var fieldAttributes = []string{"http.request.method", "http.route", "http.response.status_code"}

// addMetricTags sets p.metricTags and p.labelsOf. It adds a label to names for each attribute that has none.
func (p *Policy) addMetricTags(names *labelNames) {
	p.labelsOf = map[string][]spantable.Label{}
	for i := range semconv.Metrics {
		var tags []metricTag
		for _, name := range semconv.Metrics[i].Attributes {
			if p.labelsOf[name] == nil {
				p.labelsOf[name] = names.findOrAddVariants(name)
			}
			isFieldOfKey := slices.Contains(fieldAttributes, name)
			if !isFieldOfKey {
				tags = append(tags, metricTag{name, p.labelsOf[name]})
			}
		}
		p.metricTags = append(p.metricTags, tags)
	}
}

// findOrAddVariants returns the labels of an attribute and of its other names. It adds the missing labels.
func (n *labelNames) findOrAddVariants(attribute string) []spantable.Label {
	labels := []spantable.Label{n.findOrAdd(attribute)}
	for _, otherName := range otherNames[attribute] {
		labels = append(labels, n.findOrAdd(otherName))
	}
	return labels
}

// addMetricLabels adds the labels that become tags of spans of the given kind, because a metric has them.
func (p *Policy) addMetricLabels(labels *spantable.LabelSet, kind spantable.Kind) {
	for i, tags := range p.metricTags {
		if !semconv.Metrics[i].IsCounted(kind.String()) {
			continue
		}
		for _, t := range tags {
			for _, label := range t.labels {
				labels.Add(label)
			}
		}
	}
}

// appendMetricTags appends peer tags of the selected span to dst, each as "name:value". OpenTelemetry's conventions
// define a metric for such spans; the peer tags are its attributes, except those that the key already contains.
func (k *keys) appendMetricTags(dst []string, kind spantable.Kind) []string {
	if k.policy.metricTags == nil {
		return dst
	}
	valueOf := func(attribute string) string { return k.text(k.policy.labelsOf[attribute]...) }
	metric := semconv.MetricOf(kind.String(), valueOf)
	if metric == semconv.NoMetric {
		return dst
	}
	tags := k.policy.metricTags[metric]
	for i := range tags {
		t := &tags[i]
		if k.isAlreadyInKey(t, kind) {
			continue
		}
		if value := k.text(t.labels...); value != "" {
			dst = append(dst, k.join(t.name, ":", value))
		}
	}
	return dst
}

// isAlreadyInKey reports whether the key of the selected span, which has the given kind, already contains the attribute
// of t before appendMetricTags is called: as the gRPC status, or as another peer tag.
func (k *keys) isAlreadyInKey(t *metricTag, kind spantable.Kind) bool {
	isGRPCStatus := t.name == rpcStatusName && k.grpcStatus() != ""
	if isGRPCStatus {
		return true
	}
	label := t.labels[0] // of the current name; peerTagValue also looks for the older name
	isPeerTag := slices.Contains(k.policy.tags, label) && k.policy.isTagOf(kind, label)
	return isPeerTag && k.peerTagValue(label, kind) != ""
}
