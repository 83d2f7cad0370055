package zipkin

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"google.golang.org/protobuf/encoding/protowire"
)

// Names of the attributes to keep.
var (
	spanNames     = []string{"", "http.method", "http.route", "http.status_code", "peer.service", "db.system"}
	resourceNames = []string{"", "service.name", "service.version", "deployment.environment"}
	ofSpans       = spantable.NewNames(spanNames)
	ofResources   = spantable.NewNames(resourceNames)
)

// reported is a span before encoding.
type reported struct {
	high, low, id, parent uint64
	name, kind            string
	timestamp, duration   uint64 // microseconds
	service, peer         string
	tags                  map[string]string
	shared                bool
}

// inJSON encodes spans with encoding/json.
func inJSON(spans []reported) []byte {
	list := []map[string]any{}
	for _, s := range spans {
		m := map[string]any{
			"id": fmt.Sprintf("%016x", s.id), "traceId": fmt.Sprintf("%016x", s.low),
			"debug": true, "annotations": []any{map[string]any{"timestamp": 1, "value": "}\""}},
		}
		if s.high != 0 {
			m["traceId"] = fmt.Sprintf("%016x%016x", s.high, s.low)
		}
		for name, value := range map[string]any{
			"name":          s.name,
			"kind":          s.kind,
			"timestamp":     s.timestamp,
			"duration":      s.duration,
			"shared":        s.shared,
			"tags":          s.tags,
			"localEndpoint": s.service, "remoteEndpoint": s.peer, "parentId": s.parent,
		} {
			switch v := value.(type) {
			case string:
				if v == "" {
					continue
				} else if strings.HasSuffix(name, "Endpoint") {
					value = map[string]any{"ipv4": "10.0.0.1", "serviceName": v, "port": 80}
				}
			case uint64:
				if v == 0 {
					continue
				} else if name == "parentId" {
					value = fmt.Sprintf("%x", v)
				}
			}
			m[name] = value
		}
		list = append(list, m)
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return text
}

func nested(b []byte, n protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), message)
}

func varint(b []byte, n protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), value)
}

// inProtobuf encodes spans as a ListOfSpans.
func inProtobuf(spans []reported) (list []byte) {
	bytesOf := func(ids ...uint64) (b []byte) {
		for _, id := range ids {
			b = binary.BigEndian.AppendUint64(b, id)
		}
		return b
	}
	for _, s := range spans {
		trace := bytesOf(s.low)
		if s.high != 0 {
			trace = bytesOf(s.high, s.low)
		}
		m := nested(nested(nil, 1, trace), 3, bytesOf(s.id))
		if s.parent != 0 {
			m = nested(m, 2, bytesOf(s.parent))
		}
		if kind := slices.Index(kindNames[:], s.kind); kind > 0 {
			m = varint(m, 4, uint64(kind))
		}
		m = nested(m, 5, []byte(s.name))
		m = protowire.AppendFixed64(protowire.AppendTag(m, 6, protowire.Fixed64Type), s.timestamp)
		if s.duration > 0 {
			m = varint(m, 7, s.duration)
		}
		for number, service := range map[protowire.Number]string{8: s.service, 9: s.peer} {
			if service != "" {
				m = nested(m, number,
					varint(nested(nested(nil, 1, []byte(service)), 2, []byte{10, 0, 0, 1}), 4, 80))
			}
		}
		m = nested(m, 10, nested(nil, 2, []byte("annotated")))
		for name, value := range s.tags {
			m = nested(m, 11, nested(nested(nil, 1, []byte(name)), 2, []byte(value)))
		}
		m = varint(m, 12, 1)
		if s.shared {
			m = varint(m, 13, 1)
		}
		list = nested(list, 1, m)
	}
	return list
}

// shown formats the decoded spans as text, with attributes in the order of their names.
func shown(r *otlp.Request) (all []string) {
	for i := range r.Spans {
		s, place := &r.Spans[i], &r.Extras[i]
		of := &r.Resources[place.Resource]
		text := fmt.Sprintf("%x%016x/%x<%x %q %s %d+%d %d state=%q", place.TraceHigh, place.TraceLow, s.ID,
			s.Parent,
			r.String(s.Name), s.Kind, s.Start, s.Duration, s.Status, r.String(place.State))
		attributes := map[string]string{}
		for _, t := range r.TagsOf(s) {
			attributes[spanNames[t.Label]] = r.String(t.Text())
		}
		for _, t := range r.Tags[of.TagStart:of.TagEnd] {
			attributes["sender "+resourceNames[t.Label]] = r.String(t.Text())
		}
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			text += fmt.Sprintf(" %s=%q", name, attributes[name])
		}
		all = append(all, text)
	}
	return all
}

// want returns the text that shown must return for a span, according to docs/semantics.md; "" if the
// span is not finished.
func (s *reported) want() string {
	if s.duration == 0 {
		return ""
	}
	kind := map[string]string{"": "internal"}[s.kind] + strings.ToLower(s.kind)
	parent, status := s.parent, map[string]int{"OK": 1, "STATUS_CODE_ERROR": 2}[s.tags["otel.status_code"]]
	if parent == s.id {
		parent = 0
	}
	if parent == 0 && s.shared {
		parent = s.id
	}
	if _, isError := s.tags["error"]; isError {
		status = 2
	}
	attributes := map[string]string{"peer.service": s.peer, "sender service.name": s.service}
	for name, value := range s.tags {
		if name == "" {
			continue
		}
		if slices.Contains(spanNames, name) && attributes[name] == "" {
			attributes[name] = value
		}
		if slices.Contains(resourceNames, name) && attributes["sender "+name] == "" {
			attributes["sender "+name] = value
		}
	}
	text := fmt.Sprintf("%x%016x/%x<%x %q %s %d+%d %d state=%q", s.high, s.low, s.id, parent, s.name, kind,
		s.timestamp*1000, s.duration*1000, status, s.tags["w3c.tracestate"])
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if attributes[name] != "" {
			text += fmt.Sprintf(" %s=%q", name, attributes[name])
		}
	}
	return text
}

// randomSpans returns random spans as a reporter might send them.
func randomSpans(random *rand.Rand) (all []reported) {
	texts := []string{"", "get /", "shop", "é\"\\\n\t/", "200", "\x00", "😀", strings.Repeat("long", 50)}
	text := func() string { return texts[random.IntN(len(texts))] }
	names := []string{
		"http.method", "http.route", "http.status_code", "db.system", "peer.service",
		"service.version", "service.name", "error", "otel.status_code", "w3c.tracestate", "é", "other", "",
	}
	for range random.IntN(6) {
		s := reported{
			high: random.Uint64() * random.Uint64N(2), low: 1 + random.Uint64N(9), id: 1 + random.Uint64N(3),
			parent: random.Uint64N(3), name: text(), kind: kindNames[random.IntN(len(kindNames))],
			timestamp: random.Uint64N(2e15), duration: random.Uint64N(1000) * random.Uint64N(2),
			service: text(), peer: text(), shared: random.IntN(2) == 0, tags: map[string]string{},
		}
		for range random.IntN(6) {
			s.tags[names[random.IntN(len(names))]] = text()
		}
		if _, is := s.tags["otel.status_code"]; is {
			s.tags["otel.status_code"] = []string{"OK", "STATUS_CODE_ERROR", "?"}[random.IntN(3)]
		}
		all = append(all, s)
	}
	return all
}
