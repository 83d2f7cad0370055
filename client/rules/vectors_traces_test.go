package rules_test

const (
	start    = 1_800_000_000_000_000_000
	topLevel = 2
	failed   = 1
)

// traces contains the vectors without their snapshots, and, written by hand, which spans are counted with which flags.
var traces = []struct {
	vector
	counted map[uint64]uint8
}{
	{
		vector: web("request", "a request, a span within it, and a call of another service: the inner span "+
			"is not counted",
			traced{
				ID: 1, Service: "shop", Name: "http.request", Resource: "GET /cart", Type: "web",
				Meta: tags("span.kind", "server", "http.status_code", "200"),
			},
			traced{ID: 2, Parent: 1, Service: "shop", Name: "render", Resource: "cart.html"},
			traced{
				ID: 3, Parent: 1, Service: "shop-db", Name: "postgres.query", Resource: "SELECT 1",
				Type: "sql", Meta: tags("span.kind", "client", "out.host", "db", "db.name", "orders"),
			},
		), counted: map[uint64]uint8{1: topLevel, 3: topLevel},
	},
	{
		vector: web("measured", "what is measured is counted and is not top-level for it",
			traced{
				ID: 1, Service: "shop", Name: "http.request", Resource: "GET /cart",
				Meta: tags("span.kind", "server"),
			},
			traced{
				ID: 2, Parent: 1, Service: "shop", Name: "render", Resource: "cart.html",
				Metrics: numbers("_dd.measured", 1),
			},
		), counted: map[uint64]uint8{1: topLevel, 2: 0},
	},
	{
		vector: web("kinds", "peer tags are of clients, producers and consumers, in the order of their "+
			"bytes, with addresses blocked; of a server and of an internal span none of these; an internal "+
			"one is not counted for its kind",
			traced{
				ID: 1, Service: "shop", Name: "worker", Resource: "work",
				Meta: tags("span.kind", "server", "db.name", "orders"),
			},
			traced{
				ID: 2, Parent: 1, Service: "shop", Name: "query", Resource: "SELECT 1",
				Meta: tags("span.kind", "client", "db.name", "orders", "out.host", "10.0.0.7:5432",
					"not.wanted", "x"),
			},
			traced{
				ID: 3, Parent: 1, Service: "shop", Name: "send", Resource: "topic",
				Meta: tags("span.kind", "producer", "messaging.destination", "topic"),
			},
			traced{
				ID: 4, Parent: 1, Service: "shop", Name: "receive", Resource: "topic",
				Meta: tags("span.kind", "consumer", "messaging.destination", "topic"),
			},
			traced{
				ID: 5, Parent: 1, Service: "shop", Name: "inner", Resource: "r",
				Meta: tags("span.kind", "internal", "db.name", "orders"),
			},
		), counted: map[uint64]uint8{1: topLevel, 2: 0, 3: 0, 4: 0},
	},
	{
		vector: web("base service", "an internal span whose process is another service has that as its one "+
			"peer tag",
			traced{
				ID: 1, Service: "cron", Name: "job", Resource: "nightly",
				Meta: tags("span.kind", "internal", "_dd.base_service", "shop", "db.name", "orders"),
			},
		), counted: map[uint64]uint8{1: topLevel},
	},
	{
		vector: web("orphan", "a span whose parent is in another process is top-level, and no root",
			traced{
				ID: 2, Parent: 1, Service: "shop", Name: "http.request", Resource: "GET /cart",
				Type: "web", Meta: tags("span.kind", "server"),
			},
		), counted: map[uint64]uint8{2: topLevel},
	},
	{
		vector: web("partial", "a snapshot of a span that still runs is not counted, whatever else it is",
			traced{
				ID: 1, Service: "shop", Name: "job", Resource: "long", Meta: tags("span.kind", "server"),
				Metrics: numbers("_dd.partial_version", 0),
			},
		), counted: map[uint64]uint8{},
	},
	{
		vector: web("failed", "an error; a status as a number and one of OpenTelemetry",
			traced{
				ID: 1, Service: "shop", Name: "http.request", Resource: "GET /", Type: "web", Error: 1,
				Meta: tags("span.kind", "server"), Metrics: numbers("http.status_code", 503),
			},
			traced{
				ID: 2, Parent: 1, Service: "shop", Name: "http.client", Resource: "GET /", Type: "http",
				Error: 1, Meta: tags("span.kind", "client", "http.response.status_code", "404"),
			},
		), counted: map[uint64]uint8{1: topLevel | failed, 2: failed},
	},
	{
		vector: web("grpc", "a status by its name, and by its number",
			traced{
				ID: 1, Service: "cart", Name: "grpc.server", Resource: "/cart.Cart/Get", Type: "rpc",
				Meta: tags("span.kind", "server", "rpc.grpc.status_code", "UNAVAILABLE"),
			},
			traced{
				ID: 2, Parent: 1, Service: "cart", Name: "grpc.client", Resource: "/tax.Tax/Of",
				Type: "rpc", Meta: tags("span.kind", "client"), Metrics: numbers("grpc.code", 5),
			},
		), counted: map[uint64]uint8{1: topLevel, 2: 0},
	},
	{
		vector: web("synthetics", "of the root, and so of each span; the source of a service's name",
			traced{
				ID: 1, Service: "shop", Name: "http.request", Resource: "GET /", Type: "web",
				Meta: tags("span.kind", "server", "_dd.origin", "synthetics-browser", "_dd.svc_src", "m"),
			},
			traced{
				ID: 2, Parent: 1, Service: "shop", Name: "redis.command", Resource: "GET", Type: "redis",
				Meta: tags("span.kind", "client", "_dd.origin", "synthetics-browser"),
			},
		), counted: map[uint64]uint8{1: topLevel, 2: 0},
	},
	{
		vector: web("sampled before", "a quarter was kept by the root's _sample_rate: each span stands for "+
			"four",
			traced{
				ID: 1, Service: "shop", Name: "http.request", Resource: "GET /", Type: "web",
				Meta: tags("span.kind", "server"), Metrics: numbers("_sample_rate", 0.25),
			},
			traced{
				ID: 2, Parent: 1, Service: "shop", Name: "redis.command", Resource: "GET", Type: "redis",
				Meta: tags("span.kind", "client"),
			},
		), counted: map[uint64]uint8{1: topLevel, 2: 0},
	},
	{
		vector: web("raw names", "names go as they are: the daemon normalizes them",
			traced{
				ID: 1, Service: "My Shop", Name: "Cart::Checkout!", Resource: "",
				Meta: tags("span.kind", "internal"),
			},
		), counted: map[uint64]uint8{1: topLevel},
	},
}

// web returns a vector of a trace of a web service.
func web(name, about string, trace ...traced) vector {
	for i := range trace {
		trace[i].Start, trace[i].Duration = start+int64(i)*1000, 5_000_000-int64(i)*2000
	}
	return vector{
		Name: name, About: about,
		PeerTags:  []string{"_dd.base_service", "db.name", "messaging.destination", "out.host"},
		SpanKinds: []string{"client", "consumer", "producer", "server"}, Trace: trace,
	}
}

func tags(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

func numbers(name string, n float64) map[string]float64 { return map[string]float64{name: n} }
