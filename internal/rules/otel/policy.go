package otel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Policy defines which attributes of a span its labels are made of.
type Policy struct {
	id               rules.PolicyID
	names            *spantable.Names                    // attributes that are read from spans
	resourceNames    *spantable.Names                    // attributes that are read from resources
	tags             []spantable.Label                   // attributes that become peer tags
	affectsKey       [spantable.Kinds]spantable.LabelSet // for each kind of spans, the labels that affect the key
	onEveryKind      []spantable.Label                   // peer labels that are read from spans of every kind
	ignore           *ignore.List
	ignoreLabels     []spantable.Label // attributes that the rules of ignore match
	originAttributes []originAttribute // resource attributes that become part of the origin, sorted by name
	computed         spantable.Label   // the resource attribute otlp.StatsComputed
	tagMeanings      *tagMeanings      // nil if spans keep their names

	// metricTags contains, for each metric in semconv.Metrics, the attributes that become peer tags in addition to tags.
	// It is nil without these metrics.
	metricTags [][]metricTag
	labelsOf   map[string][]spantable.Label // labels of the attributes of these metrics

	measures        []measureRule      // one per measure
	measured        spantable.LabelSet // attributes that the measures read
	measuresAnySpan bool               // a measure, such as the duration, needs no attribute
}

// Labels configures the labels of spans.
type Labels struct {
	// Attributes are the names of additional attributes that become tags. An attribute that a span
	// does not have is read from its resource. A peer label among them is read from spans of every
	// kind.
	Attributes []string
	// Ignore contains the rules for spans that are not counted; nil counts every span.
	Ignore *ignore.List
	// Resource contains the names of resource attributes that become part of the origin, in
	// addition to its fields.
	Resource []string
	// Metrics makes tags of the attributes of the metrics that the conventions define (see package semconv).
	Metrics bool
	// KeepNames counts spans under the names that they were sent with, instead of those that the
	// conventions define (see nameRules).
	KeepNames bool
	// Measures are the attributes whose values are counted in addition to the spans.
	Measures []measure.Measure
}

// MaxAttributes is the maximum of Labels.Attributes that are not labels by convention.
const MaxAttributes = 8

// Check validates the names of attributes. The error lists everything that is invalid.
func (l *Labels) Check() (err error) {
	additional := 0
	for _, name := range l.Attributes {
		isPredefined := slices.Contains(attributeNames[:], name)
		if !isPredefined {
			additional++
		}
		hasValidLength := name != "" && len(name) <= span.MaxLabel
		if !hasValidLength || strings.Contains(name, ":") {
			err = errors.Join(err, fmt.Errorf("check otlp-dimensions, prometheus-dimensions and the labels of measure: "+
				"%q is not an attribute name; use 1 to %d bytes and no colon", name, span.MaxLabel))
		}
	}
	if additional > MaxAttributes {
		err = errors.Join(err, fmt.Errorf("check otlp-dimensions, prometheus-dimensions and the labels of measure: %d attributes "+
			"besides the predefined ones exceed the maximum of %d; remove some", additional, MaxAttributes))
	}
	return errors.Join(err, checkResource(l.Resource))
}

// NewPolicy returns the policy for labels that Check accepts.
func NewPolicy(l Labels) *Policy {
	names := labelNames{inSpans: make([]string, ownLabels), inResources: slices.Clone(resourceNames[:])}
	copy(names.inSpans, attributeNames[:])
	if !l.KeepNames {
		copy(names.inSpans[nameLabels:], nameAttributes[nameLabels:])
	}
	p := &Policy{
		id: rules.NewPolicyID(), tags: slices.Clone(tagLabels[:]), ignore: l.Ignore,
	}
	if !l.KeepNames {
		p.tagMeanings = newTagMeanings()
	}
	for _, name := range l.Attributes {
		label := names.findOrAddInherited(name)
		if peerLabels.Has(label) {
			p.onEveryKind = append(p.onEveryKind, label)
		}
		if !slices.Contains(p.tags, label) && !oldLabels.Has(label) && !keyLabels.Has(label) {
			p.tags = append(p.tags, label)
		}
	}
	for _, name := range l.Ignore.AttributeNames() {
		p.ignoreLabels = append(p.ignoreLabels, names.findOrAddInherited(name))
	}
	if l.Metrics {
		p.addMetricTags(&names)
	}
	for kind := range spantable.Kinds {
		p.affectsKey[kind] = p.labelsInKey(kind)
	}
	p.addMeasures(l.Measures, &names)
	// After the labels of spans, so that spans do not inherit these attributes of their resource.
	originAttributes, inResources := assignLabels(l.Resource, names.inResources)
	computed, inResources := assignLabels([]string{otlp.StatsComputed}, inResources)
	p.originAttributes = originAttributes
	p.computed = computed[0].label
	p.names, p.resourceNames = spantable.NewNames(names.inSpans), spantable.NewNames(inResources)
	return p
}

// labelNames contains the name of the attribute that each label stands for. The index is the label.
type labelNames struct {
	inSpans     []string
	inResources []string // "" if the attribute is not read from resources
}

// findOrAdd returns the label of an attribute of spans. If it has none yet, findOrAdd adds a label. Unlike
// findOrAddInherited, it does not read the added attribute from resources.
func (n *labelNames) findOrAdd(attribute string) spantable.Label {
	index := slices.Index(n.inSpans, attribute)
	if index < 0 {
		index = len(n.inSpans)
		n.inSpans = append(n.inSpans, attribute)
		n.inResources = append(n.inResources, "")
	}
	return spantable.Label(index)
}

// findOrAddInherited returns the label of an attribute that the operator has named, and adds a label if there is none.
// Spans inherit the attribute from their resource, unless it is predefined or describes the origin.
func (n *labelNames) findOrAddInherited(attribute string) spantable.Label {
	label := n.findOrAdd(attribute)
	isPredefined := label < fixedLabels
	hasResourceLabel := slices.Contains(n.inResources, attribute) // for example, if it describes the origin
	if !isPredefined && !hasResourceLabel {
		n.inResources[label] = attribute
	}
	return label
}

// labelsInKey returns the labels of the attributes that can change the key of a span of the given kind.
func (p *Policy) labelsInKey(kind spantable.Kind) spantable.LabelSet {
	labels := spantable.LabelsOf(p.tags...)
	for l := spantable.Other + 1; l < fixedLabels; l++ {
		labels.Add(l)
	}
	if !p.isTagOf(kind, labelPeerService) {
		labels.Remove(labelPeerService)
	}
	if !p.isTagOf(kind, labelServerAddress) {
		labels.Remove(labelServerAddress)
		labels.Remove(labelOldPeerName) // older names of the attribute
		labels.Remove(labelOldHostName)
	}
	p.addMetricLabels(&labels, kind)
	return labels
}

// isTagOf reports whether spans of a kind can have a peer tag with the given label. The tags
// peer.service and server.address are only for client, producer and consumer spans, unless the operator
// has configured them as additional attributes.
func (p *Policy) isTagOf(kind spantable.Kind, label spantable.Label) bool {
	isCall := kind == spantable.KindClient || kind == spantable.KindProducer || kind == spantable.KindConsumer
	return isCall || !peerLabels.Has(label) || slices.Contains(p.onEveryKind, label)
}

// Reads reports whether the labels of a span can depend on its attribute with this name.
func (p *Policy) Reads(attribute string) bool {
	return p.names.Find([]byte(attribute)) != spantable.Other
}
