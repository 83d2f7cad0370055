package rules

import "strings"

// TagBaseService is the configured service of the span's process, if the span itself has another one.
const TagBaseService = "_dd.base_service"

// PeerKeys returns the keys of the tags that identify the peer of a span, for example the database that it calls. It
// returns the given keys for a client, producer or consumer span, and TagBaseService for an internal span that has this
// tag. It returns nil for other spans.
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

// PeerTags appends the span's peer tags to dst, in the form "key:value". The keys of peer tags are configured in the
// daemon, which sends them as Features.PeerTags.
func PeerTags(dst []string, t Tags, keys []string) []string {
	for _, key := range PeerKeys(t.Text(TagKind), t.Text(TagBaseService), keys) {
		if value := t.Text(key); value != "" {
			dst = append(dst, key+":"+QuantizePeer(value))
		}
	}
	return dst
}
