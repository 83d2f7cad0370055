package otel

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/semconv"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// metricTag is an attribute of a metric that becomes a peer tag.
type metricTag struct {
	name   string
	labels []spantable.Label // of the attribute and of its other names, in order of preference
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

// addMetricTags sets p.metricTags and p.labelsOf. It returns the names of all labels in spans and in resources, to which
// it has added the missing ones.
func (p *Policy) addMetricTags(names, inResource []string) (allNames, allInResource []string) {
	all := labelNames{names, inResource}
	p.labelsOf = map[string][]spantable.Label{}
	for i := range semconv.Metrics {
		var tags []metricTag
		for _, name := range semconv.Metrics[i].Attributes {
			if p.labelsOf[name] == nil {
				p.labelsOf[name] = all.labelsOf(name)
			}
			if !slices.Contains(fieldAttributes, name) {
				tags = append(tags, metricTag{name, p.labelsOf[name]})
			}
		}
		p.metricTags = append(p.metricTags, tags)
	}
	return all.inSpans, all.inResources
}

// labelNames contains the attribute that each label stands for: in spans, and in resources if spans inherit it.
type labelNames struct{ inSpans, inResources []string }

// labelsOf returns the labels of an attribute and of its other names, and adds those that are missing.
func (n *labelNames) labelsOf(attribute string) []spantable.Label {
	labels := []spantable.Label{n.findOrAdd(attribute)}
	for _, otherName := range otherNames[attribute] {
		labels = append(labels, n.findOrAdd(otherName))
	}
	return labels
}

// findOrAdd returns the label of an attribute. It adds a label if there is none. Spans do not inherit its attribute from
// their resource.
func (n *labelNames) findOrAdd(attribute string) spantable.Label {
	index := slices.Index(n.inSpans, attribute)
	if index < 0 {
		index = len(n.inSpans)
		n.inSpans = append(n.inSpans, attribute)
		n.inResources = append(n.inResources, "")
	}
	return spantable.Label(index)
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

// appendMetricTags appends the attributes of the metric that counts the selected span to its peer tags, each as
// "name:value". It omits those that are tags already.
func (k *keys) appendMetricTags(dst []string, kind spantable.Kind) []string {
	if k.policy.metricTags == nil {
		return dst
	}
	valueOf := func(attribute string) string { return k.text(k.policy.labelsOf[attribute]...) }
	metric := semconv.MetricOf(kind.String(), valueOf)
	if metric == semconv.NoMetric {
		return dst
	}
	for i := range k.policy.metricTags[metric] {
		t := &k.policy.metricTags[metric][i]
		if k.isInKey(t, kind) {
			continue
		}
		if value := k.text(t.labels...); value != "" {
			dst = append(dst, k.join(t.name, ":", value))
		}
	}
	return dst
}

// isInKey reports whether the key of the selected span, which has the given kind, contains the attribute t in any case: as
// one of the other peer tags, or as the gRPC status.
func (k *keys) isInKey(t *metricTag, kind spantable.Kind) bool {
	if t.name == rpcStatusName && k.grpcStatus() != "" {
		return true
	}
	currentLabel := t.labels[0]
	canBeTag := slices.Contains(k.policy.tags, currentLabel) && k.policy.isTagOf(kind, currentLabel)
	return canBeTag && k.peerTagValue(currentLabel, kind) != ""
}
