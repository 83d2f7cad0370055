package otel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Policy is what of a span its labels are made of.
type Policy struct {
	id            rules.PolicyID
	names         *spantable.Names                    // of a span's attributes
	resourceNames *spantable.Names                    // of a resource's
	tags          []spantable.Label                   // of peer tags
	inKey         [spantable.Kinds]spantable.LabelSet // by the kind of a span: the labels that its key is made of
	ofEveryKind   []spantable.Label                   // peer labels that an operator named
	ignore        *ignore.List
	ignorable     []spantable.Label // of the attributes that its rules ask for
	keep          []keptAttribute   // of a resource, by name
}

// Labels are which labels spans have.
type Labels struct {
	// Attributes are the names of attributes that become tags, beside those that always do, and but for
	// those that are labels already. What a span does not say its resource may. A peer label that is named
	// is one of every kind of spans.
	Attributes []string
	// Ignore says which spans are not counted, as far as their attributes say; nil: none is left out.
	Ignore *ignore.List
	// Resource are the names of a resource's attributes that its origin keeps, beside its fields.
	Resource []string
}

// MaxAttributes is how many attributes may be named that no convention makes a label of.
const MaxAttributes = 8

// Check says what is unusable.
func (l *Labels) Check() (err error) {
	own := 0
	for _, name := range l.Attributes {
		if !slices.Contains(attributeNames[:], name) {
			own++
		}
		if name == "" || len(name) > span.MaxLabel || strings.Contains(name, ":") {
			err = errors.Join(err, fmt.Errorf("check otlp-dimensions and prometheus-dimensions: "+
				"%q is no name of an attribute: it has 1 to %d bytes and no colon", name, span.MaxLabel))
		}
	}
	if own > MaxAttributes {
		err = errors.Join(err, fmt.Errorf("check otlp-dimensions and prometheus-dimensions: there are %d "+
			"attributes of your own, at most %d; leave out the rest", own, MaxAttributes))
	}
	return errors.Join(err, checkKept(l.Resource))
}

// NewPolicy makes a policy of labels that Check finds nothing wrong with.
func NewPolicy(l Labels) *Policy {
	names, ofResource := make([]string, ownLabels), slices.Clone(resourceNames[:])
	copy(names, attributeNames[:])
	label := func(name string) spantable.Label {
		if at := slices.Index(names, name); at >= 0 {
			return spantable.Label(at)
		}
		names = append(names, name)
		if slices.Contains(ofResource, name) {
			name = "" // the origin says it
		}
		ofResource = append(ofResource, name)
		return spantable.Label(len(names) - 1)
	}
	p := &Policy{id: rules.NewPolicyID(), tags: slices.Clone(tagLabels[:]), ignore: l.Ignore}
	for _, name := range l.Attributes {
		at := label(name)
		if peerLabels.Has(at) {
			p.ofEveryKind = append(p.ofEveryKind, at)
		}
		if !slices.Contains(p.tags, at) && !oldLabels.Has(at) && !keyLabels.Has(at) {
			p.tags = append(p.tags, at)
		}
	}
	for _, name := range l.Ignore.Attributes() {
		p.ignorable = append(p.ignorable, label(name))
	}
	for kind := range spantable.Kinds {
		p.inKey[kind] = p.labelsInKey(kind)
	}
	p.keep, ofResource = keep(l.Resource, ofResource)
	p.names, p.resourceNames = spantable.NewNames(names), spantable.NewNames(ofResource)
	return p
}

// labelsInKey returns the labels that the keys of a kind of spans are made of.
func (p *Policy) labelsInKey(kind spantable.Kind) spantable.LabelSet {
	all := spantable.LabelsOf(p.tags...)
	for l := spantable.Other + 1; l < fixedLabels; l++ {
		all.Add(l)
	}
	for _, l := range []spantable.Label{labelPeerService, labelServerAddress} {
		if !p.hasTag(kind, l) {
			all.Remove(l)
		}
	}
	if !p.hasTag(kind, labelServerAddress) {
		all.Remove(labelOldPeerName)
		all.Remove(labelOldHostName)
	}
	return all
}

// hasTag reports whether spans of a kind have a tag. Peer labels are those of clients, producers and consumers.
func (p *Policy) hasTag(kind spantable.Kind, l spantable.Label) bool {
	switch kind {
	case spantable.KindClient, spantable.KindProducer, spantable.KindConsumer:
		return true
	}
	return !peerLabels.Has(l) || slices.Contains(p.ofEveryKind, l)
}
