package translate

import (
	"fmt"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// vocabulary says which attributes are read, and which tags they become. It never changes.
type vocabulary struct {
	ofSpans, ofResources *spantable.Names
	// By the label of an attribute, the label of the tag that it becomes of a span or its
	// resource, and of a scope.
	targets, plain [spantable.MaxLabels]spantable.Label
	rules          [spantable.MaxLabels]numberRule // by the label of a tag

	// The labels of tags that the ingest makes itself, or that are their trace's.
	kind, httpStatus, grpcStatus, measured, rate, version, env, dbName, origin, commit spantable.Label
}

// newVocabulary makes one of the tags that rules ask for. It needs several names for some of
// them, and fails where they are too many.
func newVocabulary(wanted *spantable.Names) (*vocabulary, error) {
	names := slices.Clone(attrNames[:])
	for l := 1; l < wanted.Len(); l++ {
		if wanted.Name(spantable.Label(l)) == hostTag {
			continue
		}
		for _, from := range sourcesOf(wanted.Name(spantable.Label(l))) {
			if !slices.Contains(names, from) {
				names = append(names, from)
			}
		}
	}
	if len(names) > spantable.MaxLabels {
		return nil, fmt.Errorf("translate spans for the agent: tags need %d attributes, "+
			"at most %d can be read: ask for fewer tags", len(names), spantable.MaxLabels)
	}
	v := &vocabulary{}
	find := func(tag string) spantable.Label {
		if tag == hostTag {
			return spantable.Other
		}
		return wanted.Find([]byte(tag))
	}
	for l := range wanted.Len() {
		v.rules[l] = numberRules[wanted.Name(spantable.Label(l))]
	}
	ofSpans := slices.Clone(names)
	for l, name := range names {
		v.targets[l], v.plain[l] = find(tagOf(name)), find(name)
		isOfSpans := v.targets[l] != spantable.Other || v.plain[l] != spantable.Other
		if attrComputed <= spantable.Label(l) && spantable.Label(l) < attrCount && !isOfSpans {
			ofSpans[l] = "" // a resource alone says it
		}
	}
	v.ofSpans, v.ofResources = spantable.NewNames(ofSpans), spantable.NewNames(names)
	v.kind, v.measured, v.rate = find("span.kind"), find("_dd.measured"), find("_sample_rate")
	v.httpStatus, v.grpcStatus = find("http.status_code"), find("rpc.grpc.status_code")
	v.dbName, v.env, v.version = find("db.name"), find("env"), find("version")
	v.origin, v.commit = find("_dd.origin"), find("_dd.git.commit.sha")
	return v, nil
}

// hostTag is the tag by which a tracer says its host. Of OTLP a resource alone says it.
const hostTag = "_dd.hostname"
