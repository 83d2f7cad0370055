package otel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Identifying are the attributes of a resource that say which process it is and where it runs, beside
// those that every origin has a field for.
var Identifying = []string{
	"service.instance.id", "service.namespace",
	"k8s.cluster.name", "k8s.container.name", "k8s.cronjob.name", "k8s.daemonset.name",
	"k8s.deployment.name", "k8s.job.name", "k8s.namespace.name", "k8s.node.name", "k8s.pod.name",
	"k8s.replicaset.name", "k8s.statefulset.name",
}

// MaxKept is how many attributes of a resource may be named.
const MaxKept = 32

// ParseResource parses names of resource attributes, separated by commas. "identifying" stands for those of
// Identifying; "none" is valid alone.
func ParseResource(text string) (names []string, err error) {
	if text == "none" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); name {
		case "identifying":
			names = append(names, Identifying...)
		case "", "none":
			return nil, fmt.Errorf("parse attributes %q: %q is not an attribute's name; "+
				"give none, or names with commas as identifying,cloud.region", text, name)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// keptAttribute is one that an origin keeps of its resource.
type keptAttribute struct {
	name  string
	label spantable.Label
}

// checkKept says what is unusable of the names that an operator gave.
func checkKept(names []string) (err error) {
	const flag = "check otlp-resource-attributes"
	for _, name := range names {
		if name == "" || len(name) > span.MaxLabel || strings.ContainsAny(name, "\x00 ") {
			err = errors.Join(err, fmt.Errorf("%s: %q is no name of an attribute: "+
				"it has 1 to %d bytes and no space", flag, name, span.MaxLabel))
		}
	}
	if len(names) > MaxKept {
		err = errors.Join(err, fmt.Errorf(
			"%s: there are %d attributes, at most %d; leave out the rest", flag, len(names), MaxKept))
	}
	return err
}

// keep finds the labels of what is kept, in the order of the names. Those that have none get one behind
// all others, so that no tag of a resource is taken for one that spans may have too.
func keep(names, labels []string) ([]keptAttribute, []string) {
	var kept []keptAttribute
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		at := slices.Index(labels, name)
		if at < 0 {
			at = len(labels)
			labels = append(labels, name)
		}
		kept = append(kept, keptAttribute{name, spantable.Label(at)})
	}
	return kept, labels
}
