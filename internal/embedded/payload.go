package embedded

import (
	"errors"
	"fmt"
	"math"
)

// Payload is a ClientStatsPayload as it stood on the wire.
type Payload struct {
	Hostname, Env, Version, Lang, TracerVersion, RuntimeID string
	AgentAggregation, Service, ContainerID                 string
	GitCommitSha, ImageTag, ProcessTags                    string

	Sequence, ProcessTagsHash uint64
	Tags                      []string
	Stats                     []Bucket
}

// Bucket is a ClientStatsBucket.
type Bucket struct {
	Start, Duration uint64
	AgentTimeShift  int64
	Stats           []Group
}

// Group is a ClientGroupedStats.
type Group struct {
	Service, Name, Resource, Type, DBType, SpanKind         string
	GRPCStatusCode, HTTPMethod, HTTPEndpoint, ServiceSource string

	HTTPStatusCode                       uint32
	Hits, Errors, TopLevelHits, Duration uint64
	OkSummary, ErrorSummary              []byte
	Synthetics                           bool
	IsTraceRoot                          int32

	PeerTags, AdditionalMetricTags, SpanDerivedPrimaryTags []string
}

// errNilElement is a nil bucket or group. The agent's decoder takes it, its
// handler panics on it, and the client sees the connection closed.
var errNilElement = errors.New("a nil element, on which the agent panics")

// DecodePayload reads a payload by the agent's rules. Bytes after it are
// ignored, as there.
func DecodePayload(body []byte) (*Payload, error) {
	r, p := &reader{rest: body}, &Payload{}
	if err := r.object(p.field); err != nil {
		return nil, fmt.Errorf("decode payload: %w", err)
	}
	return p, nil
}

// object reads a map with text keys in any order. field returns false for a
// key that it does not know, which is skipped.
func (r *reader) object(field func(r *reader, name string) (known bool, err error)) error {
	entries, err := r.mapping()
	if err != nil {
		return err
	}
	for range entries {
		name, err := r.text()
		if err != nil {
			return err
		}
		known, err := field(r, name)
		if !known && err == nil {
			err = r.skip(maxDepth)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// into reads a value with read and keeps it.
func into[T any](to *T, read func() (T, error)) (bool, error) {
	value, err := read()
	*to = value
	return true, err
}

func (r *reader) uint64() (uint64, error) { return r.unsigned(math.MaxUint64) }

func (r *reader) uint32() (uint32, error) {
	n, err := r.unsigned(math.MaxUint32)
	return uint32(n), err
}

func (r *reader) int64() (int64, error) { return r.signed(64) }

func (r *reader) int32() (int32, error) {
	n, err := r.signed(32)
	return int32(n), err
}

func (r *reader) texts() ([]string, error) { return list(r, (*reader).text) }

// list reads an array of one type.
func list[T any](r *reader, read func(*reader) (T, error)) ([]T, error) {
	n, err := r.array()
	if err != nil {
		return nil, err
	}
	var values []T
	for i := range n {
		value, err := read(r)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		values = append(values, value)
	}
	return values, nil
}

func (p *Payload) field(r *reader, name string) (bool, error) {
	texts := map[string]*string{
		"Hostname": &p.Hostname, "Env": &p.Env, "Version": &p.Version, "Lang": &p.Lang,
		"TracerVersion": &p.TracerVersion, "RuntimeID": &p.RuntimeID,
		"AgentAggregation": &p.AgentAggregation, "Service": &p.Service, "ContainerID": &p.ContainerID,
		"GitCommitSha": &p.GitCommitSha, "ImageTag": &p.ImageTag, "ProcessTags": &p.ProcessTags,
	}
	if to, ok := texts[name]; ok {
		return into(to, r.text)
	}
	switch name {
	case "Sequence":
		return into(&p.Sequence, r.uint64)
	case "ProcessTagsHash":
		return into(&p.ProcessTagsHash, r.uint64)
	case "Tags":
		return into(&p.Tags, r.texts)
	case "Stats":
		return into(&p.Stats, func() ([]Bucket, error) { return list(r, (*reader).bucket) })
	}
	return false, nil
}

func (r *reader) bucket() (b Bucket, err error) {
	if r.nextIsNil() {
		return b, errNilElement
	}
	return b, r.object(b.field)
}

func (b *Bucket) field(r *reader, name string) (bool, error) {
	switch name {
	case "Start":
		return into(&b.Start, r.uint64)
	case "Duration":
		return into(&b.Duration, r.uint64)
	case "AgentTimeShift":
		return into(&b.AgentTimeShift, r.int64)
	case "Stats":
		return into(&b.Stats, func() ([]Group, error) { return list(r, (*reader).group) })
	}
	return false, nil
}

func (r *reader) group() (g Group, err error) {
	if r.nextIsNil() {
		return g, errNilElement
	}
	return g, r.object(g.field)
}

func (g *Group) field(r *reader, name string) (bool, error) {
	switch name {
	case "Service":
		return into(&g.Service, r.text)
	case "Name":
		return into(&g.Name, r.text)
	case "Resource":
		return into(&g.Resource, r.text)
	case "HTTPStatusCode":
		return into(&g.HTTPStatusCode, r.uint32)
	case "Hits":
		return into(&g.Hits, r.uint64)
	case "Errors":
		return into(&g.Errors, r.uint64)
	case "TopLevelHits":
		return into(&g.TopLevelHits, r.uint64)
	case "Duration":
		return into(&g.Duration, r.uint64)
	case "OkSummary":
		return into(&g.OkSummary, r.binary)
	case "ErrorSummary":
		return into(&g.ErrorSummary, r.binary)
	}
	return g.label(r, name)
}

func (g *Group) label(r *reader, name string) (bool, error) {
	switch name {
	case "Type":
		return into(&g.Type, r.text)
	case "DBType":
		return into(&g.DBType, r.text)
	case "SpanKind":
		return into(&g.SpanKind, r.text)
	case "GRPCStatusCode":
		return into(&g.GRPCStatusCode, r.text)
	case "HTTPMethod":
		return into(&g.HTTPMethod, r.text)
	case "HTTPEndpoint":
		return into(&g.HTTPEndpoint, r.text)
	case "srv_src":
		return into(&g.ServiceSource, r.text)
	case "Synthetics":
		return into(&g.Synthetics, r.flag)
	case "IsTraceRoot":
		return into(&g.IsTraceRoot, r.int32)
	case "PeerTags":
		return into(&g.PeerTags, r.texts)
	case "AdditionalMetricTags":
		return into(&g.AdditionalMetricTags, r.texts)
	case "SpanDerivedPrimaryTags":
		return into(&g.SpanDerivedPrimaryTags, r.texts)
	}
	return false, nil
}
