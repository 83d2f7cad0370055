package wire

import (
	"reflect"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// meaningOf decodes a message and all keys in it.
func meaningOf(message []byte) (Type, obj, error) {
	kind, body, err := Split(message)
	if err != nil {
		return 0, nil, err
	}
	var m obj
	switch kind {
	case TypeDefine:
		m, err = defineMeaning(body)
	case TypeSpans:
		m, err = spansMeaning(body)
	default:
		m, err = coldMeaning(kind, body)
	}
	return kind, m, err
}

func spansMeaning(body []byte) (obj, error) {
	walker, err := WalkSpans(body)
	if err != nil {
		return nil, err
	}
	snapshots := []obj{}
	var s Snapshot
	for walker.Next(&s) {
		m := obj{
			"duration": s.Duration, "end": s.End, "error": s.Flags&span.Error != 0,
			"top_level": s.Flags&span.TopLevel != 0, "weight": s.Weight,
		}
		if s.Numbered {
			m["number"] = s.Number
		} else if m["key"], err = keyMeaning(s.Key); err != nil {
			return nil, err
		}
		snapshots = append(snapshots, m)
	}
	return obj{"snapshots": snapshots}, walker.Err()
}

func defineMeaning(body []byte) (obj, error) {
	walker, err := WalkDefine(body)
	if err != nil {
		return nil, err
	}
	definitions := []obj{}
	for {
		number, key, ok := walker.Next()
		if !ok {
			return obj{"definitions": definitions}, walker.Err()
		}
		labels, err := keyMeaning(key)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, obj{"number": number, "key": labels})
	}
}

// keyMeaning returns the labels of a key that are set.
func keyMeaning(raw []byte) (obj, error) {
	k, err := decodeKey(raw)
	if err != nil {
		return nil, err
	}
	m := obj{}
	for name, value := range map[string]string{
		"service":        k.Service,
		"operation":      k.Operation,
		"resource":       k.Resource,
		"type":           k.Type,
		"kind":           k.Kind,
		"http_method":    k.HTTPMethod,
		"http_endpoint":  k.HTTPEndpoint,
		"grpc_status":    k.GRPCStatus,
		"service_source": k.ServiceSource,
	} {
		if value != "" {
			m[name] = value
		}
	}
	if k.TraceRoot != span.TraceRootNotSet {
		m["trace_root"] = k.TraceRoot == span.TraceRootTrue
	}
	if k.HTTPStatus != 0 {
		m["http_status"] = k.HTTPStatus
	}
	if len(k.PeerTags) != 0 {
		m["peer_tags"] = k.PeerTags
	}
	if k.Synthetics {
		m["synthetics"] = true
	}
	if len(k.AdditionalTags) != 0 {
		m["additional_tags"] = k.AdditionalTags
	}
	return m, nil
}

func coldMeaning(kind Type, body []byte) (obj, error) {
	switch kind {
	case TypeHello:
		m, err := DecodeHello(body)
		origin := obj{}
		for _, field := range reflect.VisibleFields(reflect.TypeFor[span.Origin]()) {
			if v := reflect.ValueOf(m.Origin).FieldByIndex(field.Index).String(); v != "" {
				name, _ := fieldName(field)
				origin[name] = v
			}
		}
		meaning := obj{"version": m.Version, "client": m.Client, "origin": origin}
		if m.Settled {
			meaning["settled"] = true
		}
		if m.Earlier != "" {
			meaning["earlier"] = m.Earlier
		}
		return meaning, err
	case TypeWelcome:
		m, err := DecodeWelcome(body)
		meaning := obj{
			"version": m.Version, "daemon": m.Daemon, "max_frame": m.MaxFrame, "max_batch": m.MaxBatch,
			"max_keys": m.MaxKeys, "max_key_bytes": m.MaxKeyBytes, "features": featuresMeaning(&m.Features),
		}
		if m.Settled {
			meaning["settled"] = true
		}
		if m.Interval > 0 {
			meaning["interval"] = m.Interval
		}
		if m.Token != "" {
			meaning["token"] = m.Token
		}
		if m.Earlier != nil {
			meaning["earlier"] = m.Earlier
		}
		return meaning, err
	case TypeFeatures:
		m, err := DecodeFeatures(body)
		meaning := featuresMeaning(&m.Features)
		if m.Settled > 0 {
			meaning["settled"] = m.Settled
		}
		return meaning, err
	case TypeLost:
		m, err := DecodeLost(body)
		return obj{"lost": m}, err
	case TypeFlush:
		m, err := DecodeFlush(body)
		return obj{"id": m.ID, "ok": m.OK, "error": m.Error}, err
	default:
		m, err := DecodeBye(body)
		return obj{"reason": m.Reason, "detail": m.Detail, "versions": append([]uint64{}, m.Versions...)}, err
	}
}

func featuresMeaning(m *Features) obj {
	return obj{
		"stats": m.Stats, "peer_tags": listed(m.PeerTags), "span_kinds": listed(m.SpanKinds),
		"ignore_resources": listed(m.IgnoreResources), "obfuscation_version": m.ObfuscationVersion,
	}
}

// listed returns an empty list instead of nil, because their JSON differs.
func listed(list []string) []string { return append([]string{}, list...) }
