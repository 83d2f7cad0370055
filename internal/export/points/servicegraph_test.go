package points

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

func TestServiceGraph_EdgeOfSpan(t *testing.T) {
	graph := &ServiceGraph{Names: map[string]string{
		"10.0.0.7": "payments", "*.rds.amazonaws.com": "orders-db", "legacy:9000": "never",
	}}
	tags := func(tags ...string) []string { return tags }
	for name, test := range map[string]struct {
		kind, typ string
		isRoot    bool
		tags      []string
		want      edge // zero: the span has no edge
	}{
		"server":                {kind: "server", typ: "web"},
		"root server":           {kind: "server", typ: "web", isRoot: true, want: edge{"user", "shop", "virtual_node"}},
		"internal":              {kind: "internal", isRoot: true},
		"peer service":          {kind: "client", typ: "http", tags: tags("peer.service:cart", "server.address:10.1.1.1"), want: edge{"shop", "cart", ""}},
		"host":                  {kind: "client", typ: "http", tags: tags("server.address:api.example.com:8443"), want: edge{"shop", "api.example.com", ""}},
		"final dot":             {kind: "client", typ: "http", tags: tags("server.address:api.example.com."), want: edge{"shop", "api.example.com", ""}},
		"IPv6 with port":        {kind: "client", typ: "http", tags: tags("server.address:[2001:db8::1]:80"), want: edge{"shop", "2001:db8::1", ""}},
		"IPv6":                  {kind: "client", typ: "http", tags: tags("server.address:2001:db8::1"), want: edge{"shop", "2001:db8::1", ""}},
		"Kubernetes service":    {kind: "client", typ: "http", tags: tags("server.address:cart.prod.svc.cluster.local:8080"), want: edge{"shop", "cart", ""}},
		"short Kubernetes name": {kind: "client", typ: "http", tags: tags("server.address:cart.prod.svc"), want: edge{"shop", "cart", ""}},
		"Kubernetes pod":        {kind: "client", typ: "sql", tags: tags("server.address:db-0.db.prod.svc.cluster.local"), want: edge{"shop", "db", "database"}},
		"namespace svc":         {kind: "client", typ: "http", tags: tags("server.address:cart.svc.svc"), want: edge{"shop", "cart", ""}},
		"not Kubernetes":        {kind: "client", typ: "http", tags: tags("server.address:svc.example.com"), want: edge{"shop", "svc.example.com", ""}},
		"only svc":              {kind: "client", typ: "http", tags: tags("server.address:x.svc.example.com"), want: edge{"shop", "x.svc.example.com", ""}},
		"mapped address":        {kind: "client", typ: "http", tags: tags("server.address:10.0.0.7:443"), want: edge{"shop", "payments", ""}},
		"mapped domain":         {kind: "client", typ: "sql", tags: tags("server.address:a.b.rds.amazonaws.com"), want: edge{"shop", "orders-db", "database"}},
		"domain itself":         {kind: "client", typ: "http", tags: tags("server.address:rds.amazonaws.com"), want: edge{"shop", "rds.amazonaws.com", ""}},
		"RPC host":              {kind: "client", tags: tags("rpc.service:shop.Cart", "rpc.system.name:grpc", "server.address:cart"), want: edge{"shop", "cart", ""}},
		"RPC to an address":     {kind: "client", tags: tags("rpc.service:shop.Cart", "server.address:10.3.0.1"), want: edge{"shop", "shop.Cart", ""}},
		"RPC without host":      {kind: "client", tags: tags("rpc.service:shop.Cart"), want: edge{"shop", "shop.Cart", ""}},
		"no peer":               {kind: "client", typ: "http", want: edge{"shop", "unknown", ""}},
		"collapsed peer":        {kind: "client", typ: "http", tags: tags("server.address:" + span.Blocked), want: edge{"shop", span.Blocked, ""}},
		"database":              {kind: "client", typ: "sql", tags: tags("db.namespace:orders", "db.system.name:postgresql", "server.address:pg"), want: edge{"shop", "orders", "database"}},
		"numbered database":     {kind: "client", typ: "redis", tags: tags("db.namespace:0", "db.system.name:redis", "server.address:cache"), want: edge{"shop", "cache", "database"}},
		"database of a system":  {kind: "client", tags: tags("db.system.name:redis"), want: edge{"shop", "redis", "database"}},
		"database of a type":    {kind: "client", typ: "memcached", want: edge{"shop", "memcached", "database"}},
		"only a database":       {kind: "client", tags: tags("db.namespace:orders"), want: edge{"shop", "orders", "database"}},
		"Datadog's database":    {kind: "client", typ: "sql", tags: tags("db.instance:orders", "db.type:mysql", "out.host:pg"), want: edge{"shop", "orders", "database"}},
		"Datadog's host":        {kind: "client", typ: "http", tags: tags("out.host:cart"), want: edge{"shop", "cart", ""}},
		"producer":              {kind: "producer", tags: tags("messaging.destination.name:orders", "messaging.system:kafka"), want: edge{"shop", "orders", "messaging_system"}},
		"consumer":              {kind: "consumer", tags: tags("messaging.destination.name:orders", "messaging.system:kafka"), want: edge{"orders", "shop", "messaging_system"}},
		"root consumer":         {kind: "consumer", isRoot: true, tags: tags("messaging.destination.name:orders"), want: edge{"orders", "shop", "messaging_system"}},
		"broker":                {kind: "producer", tags: tags("messaging.system:kafka"), want: edge{"shop", "kafka", "messaging_system"}},
		"unknown topic":         {kind: "producer", want: edge{"shop", "unknown", "messaging_system"}},
		"client that sends":     {kind: "client", tags: tags("messaging.destination.name:orders", "messaging.operation.type:send"), want: edge{"shop", "orders", "messaging_system"}},
		"client that receives":  {kind: "client", tags: tags("messaging.destination.name:orders", "messaging.operation.type:receive")},
		"client that settles":   {kind: "client", tags: tags("messaging.destination.name:orders", "messaging.operation.type:settle")},
	} {
		k := &span.Key{Service: "shop", Kind: test.kind, Type: test.typ, PeerTags: test.tags, TraceRoot: span.TraceRootFalse}
		if test.isRoot {
			k.TraceRoot = span.TraceRootTrue
		}
		hasEdge := graph.metricOf(k) != noMetric
		if hasEdge != (test.want != edge{}) {
			t.Errorf("%s: has an edge: %t", name, hasEdge)
		} else if got := graph.edge("shop", k); hasEdge && got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestParseNodeNames(t *testing.T) {
	names, err := ParseNodeNames("10.0.0.7=payments, *.example.com=example")
	if err != nil || len(names) != 2 || names["10.0.0.7"] != "payments" || names["*.example.com"] != "example" {
		t.Errorf("%v, %v", names, err)
	}
	for _, text := range []string{"payments", "=payments", "10.0.0.7=", "a=b,,c=d"} {
		if _, err := ParseNodeNames(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
