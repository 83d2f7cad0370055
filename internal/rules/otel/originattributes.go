package otel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Identifying contains the resource attributes that identify a process and where it runs, except
// those that have a field of their own in every origin.
var Identifying = []string{
	"service.instance.id", "service.namespace",
	"k8s.cluster.name", "k8s.container.name", "k8s.cronjob.name", "k8s.daemonset.name",
	"k8s.deployment.name", "k8s.job.name", "k8s.namespace.name", "k8s.node.name", "k8s.pod.name",
	"k8s.replicaset.name", "k8s.statefulset.name",
}

// MaxKept is the maximum number of resource attributes that an operator can name.
const MaxKept = 32

// ParseResource parses a comma-separated list of resource attributes, or "none" for an empty list. It
// replaces the word "identifying" by the names in Identifying. It returns an error if a name is empty,
// or if "none" is not the only one.
func ParseResource(text string) (names []string, err error) {
	if text == "none" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		switch name {
		case "identifying":
			names = append(names, Identifying...)
		case "", "none":
			return nil, fmt.Errorf("parse attributes %q: %q is not an attribute name; use none, or a "+
				"comma-separated list such as identifying,cloud.region", text, name)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// originAttribute is a resource attribute that becomes part of the origin.
type originAttribute struct {
	name  string
	label spantable.Label
}

// checkResource checks the names of the resource attributes that the operator wants in the statistics.
// Its error lists each invalid name. More than MaxKept names are an error, too.
func checkResource(names []string) (err error) {
	for _, name := range names {
		hasValidLength := name != "" && len(name) <= span.MaxLabel
		hasInvalidByte := strings.ContainsAny(name, "\x00 ")
		if !hasValidLength || hasInvalidByte {
			err = errors.Join(err, fmt.Errorf("check otlp-resource-attributes: %q is not an attribute name; "+
				"use 1 to %d bytes and no space", name, span.MaxLabel))
		}
	}
	if len(names) > MaxKept {
		err = errors.Join(err, fmt.Errorf("check otlp-resource-attributes: %d attributes exceed the maximum of %d; "+
			"remove some", len(names), MaxKept))
	}
	return err
}

// assignLabels returns an attribute for each different name, sorted by name. Its label is the index of the
// name in allLabelNames, which is labelNames with the missing names appended.
func assignLabels(names, labelNames []string) (attributes []originAttribute, allLabelNames []string) {
	sortedNames := slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range sortedNames {
		label := slices.Index(labelNames, name)
		if label < 0 {
			label = len(labelNames)
			labelNames = append(labelNames, name)
		}
		attributes = append(attributes, originAttribute{name, spantable.Label(label)})
	}
	return attributes, labelNames
}
