package traces

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// fakeSpan is a tracer's span that can be encoded in any format. Its tags are lists instead of maps, so
// that a name can occur twice.
type fakeSpan struct {
	service, name, resource, typ string
	id, parent                   uint64
	traceHigh, traceLow          uint64 // the same for all spans of a trace; 0 if irrelevant for a test
	start, duration              int64
	failed                       bool
	meta                         [][2]string
	metrics                      []fakeNumber
}

type fakeNumber struct {
	key   string
	value float64
}

// fakePayload is the content of a request.
type fakePayload struct {
	traces                              [][]*fakeSpan
	origins                             []string // origin of each trace, if the format supports it
	env, version, host, lang, container string
	commit, processTags                 string
}

var anyNumbers = []float64{0, 1, -1, 0.5, 2, 200, 404, 404.5, 99, 600, 1e9}

func randomPayload(rnd *rand.Rand, now time.Time) *fakePayload {
	p := &fakePayload{}
	maybe := func(odds int, s ...string) string {
		if rnd.IntN(odds) == 0 {
			return pick(rnd, s...)
		}
		return ""
	}
	p.env, p.version, p.host = maybe(2, "prod", "Staging"), maybe(2, "v1"), maybe(3, "node-1")
	p.lang, p.container = maybe(2, "go", "java"), maybe(3, "abc")
	p.commit, p.processTags = maybe(4, "c0ffee"), maybe(4, "entrypoint.name:x")
	for range rnd.IntN(5) {
		p.traces = append(p.traces, randomTrace(rnd, now))
		p.origins = append(p.origins, maybe(3, "synthetics", "rum", "synthetics-browser"))
	}
	return p
}

func randomTrace(rnd *rand.Rand, now time.Time) []*fakeSpan {
	n := pick(rnd, 0, 1, 1, 2, 3, 5, 12, 30)
	trace := make([]*fakeSpan, n)
	root := rnd.IntN(max(n, 1))
	rootParent := pick(rnd, uint64(0), 0, 0, 0, 9999)
	for i := range trace {
		s := &fakeSpan{
			service: pick(rnd, "shop", "shop", "shop-db", "Shop Front", "", "+++", "caché", "bad\xffutf8"),
			name:    pick(rnd, "web.request", "db.query", "9lives", "a-b", "", "x\xfe\xfdy"),
			resource: pick(rnd, "GET /", "GET /cart", "SELECT 1", "", "bad\xff\xfe\xfdresource",
				"a long one that is longer than thirty-two bytes by far"),
			typ: pick(rnd, "web", "rpc", "", "custom"), id: uint64(i + 1), parent: uint64(root + 1),
			start:    now.Add(-time.Duration(rnd.IntN(3600)) * time.Second).UnixNano(),
			duration: rnd.Int64N(5e9),
			failed:   rnd.IntN(5) == 0,
		}
		// At most one root or one lost parent, because the agent uses any of several.
		switch {
		case i == root:
			s.parent = rootParent
		case rootParent == 0 && rnd.IntN(3) == 0:
			s.parent = rnd.Uint64N(uint64(n + 2))
		case rnd.IntN(3) == 0:
			s.parent = 1 + uint64(rnd.IntN(i+1))
		}
		switch rnd.IntN(60) {
		case 0:
			s.start = rnd.Int64N(1e17)
		case 1:
			s.duration = -5
		case 2:
			s.duration = 1<<63 - 1
		case 3:
			if rootParent == 0 {
				s.id = uint64(1 + rnd.IntN(n))
			}
		case 4:
			if rnd.IntN(10) == 0 {
				s.id = 0
			}
		}
		s.randomTags(rnd)
		trace[i] = s
	}
	return trace
}

func (s *fakeSpan) randomTags(rnd *rand.Rand) {
	text := func(odds int, key string, of ...string) {
		if rnd.IntN(odds) == 0 {
			s.meta = append(s.meta, [2]string{key, pick(rnd, of...)})
		}
	}
	number := func(odds int, key string, of ...float64) {
		if rnd.IntN(odds) == 0 {
			s.metrics = append(s.metrics, fakeNumber{key, pick(rnd, of...)})
		}
	}
	text(2, "span.kind", "client", "server", "producer", "consumer", "internal", "Client", "other", "")
	text(3, "http.status_code", "200", "404", "99", "600", "0200", "+200", "200.0", "abc", "")
	number(6, "http.status_code", anyNumbers...)
	text(6, "http.response.status_code", "200", "404.0", "1e2", "-1", "abc", "4294967296")
	number(6, "http.response.status_code", anyNumbers...)
	for _, key := range []string{
		"rpc.grpc.status_code", "grpc.code", "rpc.grpc.status.code",
		"grpc.status.code", "rpc.response.status_code",
	} {
		text(8, key, "0", "16", "17", "NOT_FOUND", "StatusCode.Canceled", "deadlineexceeded", "nope", "")
		number(8, key, anyNumbers...)
	}
	text(4, "rpc.system", "grpc", "http", "")
	text(4, "rpc.system.name", "grpc", "http", "")
	text(5, "_dd.svc_src", "redis", "m", "")
	number(20, "_dd.svc_src", anyNumbers...)
	text(3, "_dd.base_service", "shop", "Main Shop", "", "+++", "other", "10.0.0.1")
	number(20, "_dd.base_service", anyNumbers...)
	text(4, "peer.service", "Some Peer", "peer", "", "!!")
	text(3, "out.host", randomHost(rnd))
	text(3, "db.name", "orders", "", "bad\xff")
	number(10, "db.name", anyNumbers...)
	text(5, "peer.hostname", randomHost(rnd))
	number(3, "_dd.measured", 1, 1, 0)
	text(30, "_dd.measured", "1", "1.0", "true")
	number(3, "_top_level", 1, 1, 0)
	text(30, "_top_level", "1", "x")
	number(6, "_dd.top_level", 1, 0)
	number(8, "_dd.partial_version", 0, 1, -1)
	number(5, "_sample_rate", 1, 0.5, 0.25, 0, 2, -1)
	text(60, "_sample_rate", "0.5")
	text(5, "_dd.origin", "synthetics", "rum", "")
	text(4, "env", "prod", "Dev", "")
	text(4, "version", "1.2.3", "")
	text(6, "_dd.hostname", "host-a", "")
	text(6, "_dd.git.commit.sha", "deadbeef", "")
	text(9, "_dd.tags.process", "a:b,c:d", "")
	text(9, "_dd.stats_computed", "true", "false", "") // of OTLP's resources only
	text(2, "some.other.tag", "of no interest", "")
	number(2, "_sampling_priority_v1", 1, 0, -1, 2)
	rnd.Shuffle(len(s.meta), func(i, j int) { s.meta[i], s.meta[j] = s.meta[j], s.meta[i] })
}

// appendText writes a string in one of the encodings that tracers use.
func appendText(rnd *rand.Rand, b []byte, s string) []byte {
	if rnd.IntN(30) == 0 {
		return msgp.AppendBytes(b, []byte(s))
	}
	return msgp.AppendString(b, s)
}

// appendNumber sometimes writes an integral number as an integer, like some encoders.
func appendNumber(rnd *rand.Rand, b []byte, v float64) []byte {
	if v == float64(int64(v)) && rnd.IntN(2) == 0 {
		return msgp.AppendInt64(b, int64(v))
	}
	return msgp.AppendFloat64(b, v)
}

func (s *fakeSpan) appendV04(rnd *rand.Rand, b []byte, shuffled bool) []byte {
	fields := []func(){
		func() { b = appendText(rnd, msgp.AppendString(b, "service"), s.service) },
		func() { b = appendText(rnd, msgp.AppendString(b, "name"), s.name) },
		func() { b = appendText(rnd, msgp.AppendString(b, "resource"), s.resource) },
		func() { b = appendText(rnd, msgp.AppendString(b, "type"), s.typ) },
		func() { b = msgp.AppendUint64(msgp.AppendString(b, "trace_id"), cmp.Or(s.traceLow, 77)) },
		func() { b = msgp.AppendUint64(msgp.AppendString(b, "span_id"), s.id) },
		func() { b = msgp.AppendInt64(msgp.AppendString(b, "parent_id"), int64(s.parent)) },
		func() { b = msgp.AppendInt64(msgp.AppendString(b, "start"), s.start) },
		func() { b = msgp.AppendInt64(msgp.AppendString(b, "duration"), s.duration) },
		func() {
			b = msgp.AppendString(b, "error")
			switch {
			case s.failed:
				b = msgp.AppendInt32(b, 1)
			case rnd.IntN(2) == 0:
				b = msgp.AppendNil(b)
			default:
				b = msgp.AppendInt32(b, 0)
			}
		},
		func() {
			b = msgp.AppendMapHeader(msgp.AppendString(b, "meta"), uint32(len(s.meta)))
			for _, kv := range s.meta {
				b = appendText(rnd, msgp.AppendString(b, kv[0]), kv[1])
			}
		},
		func() {
			b = msgp.AppendMapHeader(msgp.AppendString(b, "metrics"), uint32(len(s.metrics)))
			for _, kv := range s.metrics {
				b = appendNumber(rnd, msgp.AppendString(b, kv.key), kv.value)
			}
		},
		func() {
			b = msgp.AppendMapHeader(msgp.AppendString(b, "meta_struct"), 1)
			b = msgp.AppendBytes(msgp.AppendString(b, pick(rnd, "appsec", "appsec", "appsec", "db.name")),
				[]byte("blob"))
		},
		func() {
			b = msgp.AppendArrayHeader(msgp.AppendString(b, "span_links"), 1)
			b = msgp.AppendMapHeader(b, 1)
			b = msgp.AppendUint64(msgp.AppendString(b, "span_id"), 5)
		},
	}
	if rnd.IntN(4) != 0 {
		fields = fields[:12]
	}
	if shuffled {
		rnd.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	b = msgp.AppendMapHeader(b, uint32(len(fields)))
	for _, field := range fields {
		field()
	}
	return b
}

func (p *fakePayload) v04(rnd *rand.Rand) []byte {
	b := msgp.AppendArrayHeader(nil, uint32(len(p.traces)))
	for _, trace := range p.traces {
		b = msgp.AppendArrayHeader(b, uint32(len(trace)))
		for _, s := range trace {
			b = s.appendV04(rnd, b, rnd.IntN(3) == 0)
		}
	}
	return b
}

func (p *fakePayload) v05(rnd *rand.Rand) []byte {
	var dict []string
	if rnd.IntN(3) > 0 {
		dict = append(dict, "")
	}
	number := func(s string) uint32 {
		i := slices.Index(dict, s)
		if i < 0 {
			dict = append(dict, s)
			i = len(dict) - 1
		}
		return uint32(i)
	}
	traces := msgp.AppendArrayHeader(nil, uint32(len(p.traces)))
	for _, trace := range p.traces {
		traces = msgp.AppendArrayHeader(traces, uint32(len(trace)))
		for _, s := range trace {
			b := msgp.AppendArrayHeader(traces, 12)
			b = msgp.AppendUint32(b, number(s.service))
			b = msgp.AppendUint32(b, number(s.name))
			b = msgp.AppendUint32(b, number(s.resource))
			b = msgp.AppendUint64(b, cmp.Or(s.traceLow, 77))
			b = msgp.AppendUint64(b, s.id)
			b = msgp.AppendUint64(b, s.parent)
			b = msgp.AppendInt64(b, s.start)
			b = msgp.AppendInt64(b, s.duration)
			b = msgp.AppendInt32(b, map[bool]int32{true: 1}[s.failed])
			b = msgp.AppendMapHeader(b, uint32(len(s.meta)))
			for _, kv := range s.meta {
				b = msgp.AppendUint32(b, number(kv[0]))
				b = msgp.AppendUint32(b, number(kv[1]))
			}
			b = msgp.AppendMapHeader(b, uint32(len(s.metrics)))
			for _, kv := range s.metrics {
				b = msgp.AppendUint32(b, number(kv.key))
				b = appendNumber(rnd, b, kv.value)
			}
			traces = msgp.AppendUint32(b, number(s.typ))
		}
	}
	b := msgp.AppendArrayHeader(nil, 2)
	b = msgp.AppendArrayHeader(b, uint32(len(dict)))
	for _, s := range dict {
		b = appendText(rnd, b, s)
	}
	return append(b, traces...)
}

func (p *fakePayload) v07(rnd *rand.Rand) []byte {
	b := msgp.AppendMapHeader(nil, 8)
	for _, kv := range [][2]string{
		{"container_id", p.container},
		{"language_name", p.lang},
		{"env", p.env},
		{"hostname", p.host},
		{"app_version", p.version},
		{"runtime_id", "r"},
	} {
		b = msgp.AppendString(msgp.AppendString(b, kv[0]), kv[1])
	}
	var tags [][2]string
	if p.commit != "" {
		tags = append(tags, [2]string{"_dd.git.commit.sha", p.commit})
	}
	if p.processTags != "" {
		tags = append(tags, [2]string{"_dd.tags.process", p.processTags})
	}
	if rnd.IntN(4) == 0 {
		tags = append(tags, [2]string{"_dd.stats_computed", "true"})
	}
	b = msgp.AppendMapHeader(msgp.AppendString(b, "tags"), uint32(len(tags)))
	for _, kv := range tags {
		b = msgp.AppendString(msgp.AppendString(b, kv[0]), kv[1])
	}
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "chunks"), uint32(len(p.traces)))
	for i, trace := range p.traces {
		b = msgp.AppendMapHeader(b, 4)
		b = msgp.AppendInt32(msgp.AppendString(b, "priority"), int32(rnd.IntN(3)))
		b = msgp.AppendString(msgp.AppendString(b, "origin"), p.origins[i])
		b = msgp.AppendMapHeader(msgp.AppendString(b, "tags"), 1)
		b = msgp.AppendString(msgp.AppendString(b, "env"), "of a chunk")
		b = msgp.AppendArrayHeader(msgp.AppendString(b, "spans"), uint32(len(trace)))
		for _, s := range trace {
			b = s.appendV04(rnd, b, false)
		}
	}
	return b
}

// v1Writer writes each string at its first use and its number afterwards.
type v1Writer struct {
	b    []byte
	seen map[string]uint32
}

func (w *v1Writer) text(s string) {
	s = strings.ToValidUTF8(s, "?")
	if n, ok := w.seen[s]; ok {
		w.b = msgp.AppendUint32(w.b, n)
		return
	}
	w.seen[s] = uint32(len(w.seen))
	w.b = msgp.AppendString(w.b, s)
}

func (w *v1Writer) field(n uint32) { w.b = msgp.AppendUint32(w.b, n) }

func (w *v1Writer) fieldText(n uint32, s string) {
	w.field(n)
	w.text(s)
}

// v1 generates only valid strings: in this format, the agent keeps invalid strings unchanged, and the
// daemon repairs them.
func (p *fakePayload) v1(rnd *rand.Rand) []byte {
	w := &v1Writer{seen: map[string]uint32{"": 0}}
	w.b = msgp.AppendMapHeader(nil, 9)
	if rnd.IntN(3) == 0 {
		w.b = msgp.AppendMapHeader(nil, 10)
		w.field(1)
		ahead := []string{"span.kind", "_dd.measured", "shop", "never used"}
		w.b = msgp.AppendArrayHeader(w.b, uint32(len(ahead)))
		for _, s := range ahead {
			w.text(s)
		}
	}
	w.fieldText(2, p.container)
	w.fieldText(3, p.lang)
	w.fieldText(5, "tracer")
	w.fieldText(7, p.env)
	w.fieldText(8, p.host)
	w.fieldText(9, p.version)
	var attributes [][2]string
	if p.commit != "" {
		attributes = append(attributes, [2]string{"_dd.git.commit.sha", p.commit})
	}
	if p.processTags != "" {
		attributes = append(attributes, [2]string{"_dd.tags.process", p.processTags})
	}
	if rnd.IntN(4) == 0 {
		attributes = append(attributes, [2]string{"_dd.stats_computed", "true"})
	}
	w.field(10)
	w.b = msgp.AppendArrayHeader(w.b, uint32(3*len(attributes)))
	for _, kv := range attributes {
		w.text(kv[0])
		w.field(1)
		w.text(kv[1])
	}
	w.field(99) // an unknown field, as in a later version
	w.b = msgp.AppendArrayHeader(w.b, 2)
	w.text("of the future")
	w.b = msgp.AppendMapHeader(w.b, 1)
	w.b = msgp.AppendUint32(w.b, 1)
	w.text("nested in it")
	w.field(11)
	w.b = msgp.AppendArrayHeader(w.b, uint32(len(p.traces)))
	for i, trace := range p.traces {
		w.chunk(rnd, trace, p.origins[i])
	}
	return w.b
}

func (w *v1Writer) chunk(rnd *rand.Rand, trace []*fakeSpan, origin string) {
	w.b = msgp.AppendMapHeader(w.b, 4)
	w.field(1)
	w.b = msgp.AppendInt32(w.b, int32(rnd.IntN(3)))
	w.fieldText(2, origin)
	w.field(6)
	id := make([]byte, 16)
	if len(trace) > 0 {
		binary.BigEndian.PutUint64(id, trace[0].traceHigh)
		binary.BigEndian.PutUint64(id[8:], trace[0].traceLow)
	}
	w.b = msgp.AppendBytes(w.b, id)
	w.field(4)
	w.b = msgp.AppendArrayHeader(w.b, uint32(len(trace)))
	for _, s := range trace {
		w.span(rnd, s)
	}
}

func (w *v1Writer) span(rnd *rand.Rand, s *fakeSpan) {
	w.b = msgp.AppendMapHeader(w.b, 12)
	w.fieldText(1, s.service)
	w.fieldText(2, s.name)
	w.fieldText(3, s.resource)
	w.field(4)
	w.b = msgp.AppendUint64(w.b, s.id)
	w.field(5)
	w.b = msgp.AppendUint64(w.b, s.parent)
	w.field(6)
	w.b = msgp.AppendUint64(w.b, uint64(s.start))
	w.field(7)
	w.b = msgp.AppendUint64(w.b, uint64(max(s.duration, 0)))
	w.field(8)
	w.b = msgp.AppendBool(w.b, s.failed)
	w.fieldText(10, s.typ)
	w.field(16)
	w.b = msgp.AppendUint32(w.b, uint32(rnd.IntN(7)))
	w.field(12)
	w.b = msgp.AppendArrayHeader(w.b, 1) // an event with a string of its own
	w.b = msgp.AppendMapHeader(w.b, 1)
	w.fieldText(2, "an event")
	w.field(9)
	w.b = msgp.AppendArrayHeader(w.b, uint32(3*(len(s.meta)+len(s.metrics))))
	for _, kv := range s.meta {
		w.text(kv[0])
		w.field(1)
		w.text(kv[1])
	}
	for _, kv := range s.metrics {
		w.text(kv.key)
		switch {
		case kv.value == float64(int64(kv.value)) && rnd.IntN(3) == 0:
			w.field(4)
			w.b = msgp.AppendInt64(w.b, int64(kv.value))
		case (kv.value == 0 || kv.value == 1) && rnd.IntN(3) == 0:
			w.field(2)
			w.b = msgp.AppendBool(w.b, kv.value == 1)
		default:
			w.field(3)
			w.b = msgp.AppendFloat64(w.b, kv.value)
		}
	}
}
