package rules

import "strings"

// TagBaseService is the configured service of the span's process, if the span itself has another one.
const TagBaseService = "_dd.base_service"

// PeerKeys returns the keys of the tags that identify the peer of a span, for example the database that the span
// calls. For a client, producer or consumer span these are the given keys. For an internal span, or one without a
// kind, it is TagBaseService if the span has this tag. PeerKeys returns nil for other spans, or if keys is empty.
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

// PeerTags appends the tags that identify the peer of a span, for example the database that the span calls, to dst
// as "key:value". keys are the keys that the daemon has sent as Features.PeerTags.
func PeerTags(dst []string, t Tags, keys []string) []string {
	for _, key := range PeerKeys(t.Text(TagKind), t.Text(TagBaseService), keys) {
		if value := t.Text(key); value != "" {
			dst = append(dst, key+":"+QuantizePeer(value))
		}
	}
	return dst
}
