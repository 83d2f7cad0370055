package otel

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/semconv"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// metricTag is an attribute of a metric that becomes a peer tag.
type metricTag struct {
	name   string
	labels []spantable.Label // of the attribute and of its older names, in order of preference
}

// olderNames contains older names of the attributes of metrics, in order of preference.
var olderNames = map[string][]string{
	"http.request.method":      {"http.method"},
	"url.scheme":               {"http.scheme"},
	"network.protocol.name":    {"net.protocol.name"},
	"network.protocol.version": {"net.protocol.version", "http.flavor"},
	"server.address":           {"net.peer.name"},
	"server.port":              {"net.peer.port"},
	"network.peer.address":     {"net.sock.peer.addr"},
	"network.peer.port":        {"net.sock.peer.port"},

	"rpc.system.name":    {"rpc.system"},
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
	labelOf := func(name string) spantable.Label {
		i := slices.Index(names, name)
		if i < 0 {
			i = len(names)
			names, inResource = append(names, name), append(inResource, "") // spans do not inherit the attribute
		}
		return spantable.Label(i)
	}
	p.labelsOf = map[string][]spantable.Label{}
	for i := range semconv.Metrics {
		var tags []metricTag
		for _, name := range semconv.Metrics[i].Attributes {
			if p.labelsOf[name] == nil {
				labels := []spantable.Label{labelOf(name)}
				for _, older := range olderNames[name] {
					labels = append(labels, labelOf(older))
				}
				p.labelsOf[name] = labels
			}
			if !slices.Contains(fieldAttributes, name) {
				tags = append(tags, metricTag{name, p.labelsOf[name]})
			}
		}
		p.metricTags = append(p.metricTags, tags)
	}
	return names, inResource
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
	for _, t := range k.policy.metricTags[metric] {
		isTag := slices.Contains(k.policy.tags, t.labels[0]) && k.policy.isTagOf(kind, t.labels[0])
		if isTag {
			continue
		}
		isField := t.name == rpcStatusName && k.grpcStatus() != ""
		if isField {
			continue
		}
		if value := k.text(t.labels...); value != "" {
			dst = append(dst, k.join(t.name, ":", value))
		}
	}
	return dst
}
