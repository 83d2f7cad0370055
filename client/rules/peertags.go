package rules

import "strings"

// TagBaseService is the configured service of the span's process, if the span has another one.
const TagBaseService = "_dd.base_service"

// PeerKeys returns the tags that identify the peer of a span: all of keys for a client, producer or
// consumer, only the base service for an internal span that has one, and none otherwise. keys are
// those that the agent wants.
func PeerKeys(kind, baseService string, keys []string) []string {
	if len(keys) == 0 {
		return nil
	}
	switch strings.ToLower(kind) {
	case "client", "producer", "consumer":
		return keys
	case "", "internal":
		if baseService != "" {
			return baseServiceOnly
		}
	}
	return nil
}

var baseServiceOnly = []string{TagBaseService}

// PeerTags appends the span's peer tags as "key:value". keys are those of the daemon's Features.
func PeerTags(dst []string, t Tags, keys []string) []string {
	for _, key := range PeerKeys(t.Text(TagKind), t.Text(TagBaseService), keys) {
		if value := t.Text(key); value != "" {
			dst = append(dst, key+":"+QuantizePeer(value))
		}
	}
	return dst
}
