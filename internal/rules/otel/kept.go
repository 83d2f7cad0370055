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

// ParseResource parses a comma-separated list of resource attributes. The word "identifying"
// expands to the attributes in Identifying. The text "none" is an empty list, and cannot be part of
// a list.
func ParseResource(text string) (names []string, err error) {
	if text == "none" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); name {
		case "identifying":
			names = append(names, Identifying...)
		case "", "none":
			return nil, fmt.Errorf("parse attributes %q: %q is not an attribute name; give none, or a "+
				"comma-separated list such as identifying,cloud.region", text, name)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// keptAttribute is a resource attribute that becomes part of the origin.
type keptAttribute struct {
	name  string
	label spantable.Label
}

// checkKept validates the resource attributes that an operator named.
func checkKept(names []string) (err error) {
	const flag = "check otlp-resource-attributes"
	for _, name := range names {
		if name == "" || len(name) > span.MaxLabel || strings.ContainsAny(name, "\x00 ") {
			err = errors.Join(err, fmt.Errorf("%s: %q is not an attribute name: "+
				"it has 1 to %d bytes and no space", flag, name, span.MaxLabel))
		}
	}
	if len(names) > MaxKept {
		err = errors.Join(err, fmt.Errorf(
			"%s: %d attributes exceed the maximum of %d; remove some", flag, len(names), MaxKept))
	}
	return err
}

// keep returns the attributes of an origin, sorted by name, with their labels. names are the
// attributes to keep, and labels is the list of names by label. A name without a label is appended
// to labels. So its label is larger than those of span attributes, and the resource's tag does not
// become a label of spans.
func keep(names, labels []string) ([]keptAttribute, []string) {
	var kept []keptAttribute
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		label := slices.Index(labels, name)
		if label < 0 {
			label = len(labels)
			labels = append(labels, name)
		}
		kept = append(kept, keptAttribute{name, spantable.Label(label)})
	}
	return kept, labels
}
