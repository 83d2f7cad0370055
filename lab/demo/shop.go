package demo

import (
	"math/rand/v2"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// Services of the shop. Each has its own tracer, and so its own origin.
const (
	frontEnd = iota
	cart
	payments
	orders
	services
)

var serviceNames = [services]string{"front-end", "cart", "payments", "orders"}

// step is one span of a request: its service, labels, typical duration, and how often it fails.
type step struct {
	service  int
	key      client.Key
	typical  time.Duration
	failsOne int // one in failsOne spans fails; 0: none
	entry    bool
	slowOne  int // one in slowOne spans takes ten times as long; 0: none
}

func server(service int, method, endpoint string, status uint32, typical time.Duration) step {
	return step{service: service, typical: typical, entry: true, key: client.Key{
		Service: serviceNames[service], Operation: "http.request", Resource: method + " " + endpoint,
		Type: "web", Kind: "server", HTTPStatus: status, HTTPMethod: method, HTTPEndpoint: endpoint,
	}}
}

func call(service, to int, method, endpoint string, typical time.Duration) step {
	return step{service: service, typical: typical, key: client.Key{
		Service: serviceNames[service], Operation: "http.client", Resource: method + " " + endpoint,
		Type: "http", Kind: "client", HTTPMethod: method,
		PeerTags: []string{"peer.service:" + serviceNames[to]},
	}}
}

func postgres(service int, typical time.Duration, query string) step {
	return step{service: service, typical: typical, key: client.Key{
		Service: serviceNames[service] + "-postgres", Operation: "postgres.query", Resource: query,
		Type: "sql", Kind: "client",
		PeerTags: []string{"db.instance:shop", "db.system:postgresql", "peer.hostname:postgres.shop"},
	}}
}

func redis(service int, typical time.Duration, command string) step {
	return step{service: service, typical: typical, key: client.Key{
		Service: serviceNames[service] + "-redis", Operation: "redis.command", Resource: command,
		Type: "redis", Kind: "client", PeerTags: []string{"db.system:redis", "peer.hostname:redis.shop"},
	}}
}

func queue(service int, operation, kind string, typical time.Duration) step {
	return step{service: service, typical: typical, entry: kind == "consumer", key: client.Key{
		Service: serviceNames[service], Operation: operation, Resource: "orders.created",
		Type: "queue", Kind: kind,
		PeerTags: []string{"messaging.destination:orders.created", "messaging.system:kafka"},
	}}
}

func (s step) failing(oneIn int) step { s.failsOne = oneIn; return s }
func (s step) slow(oneIn int) step    { s.slowOne = oneIn; return s }
func (s step) root() step             { s.key.TraceRoot = client.TraceRootTrue; return s }

// request is an action of a customer, with its frequency in percent.
type request struct {
	share int
	steps []step
}

// menu lists all actions of the shop's customers.
var menu = []request{
	{50, []step{
		server(frontEnd, "GET", "/", 200, 12*time.Millisecond).root(),
		redis(frontEnd, 600*time.Microsecond, "GET"),
	}},
	{30, []step{
		server(frontEnd, "GET", "/product/{id}", 200, 25*time.Millisecond).root(),
		postgres(frontEnd, 4*time.Millisecond, "SELECT name, price FROM product WHERE id = ?"),
		redis(frontEnd, 700*time.Microsecond, "MGET"),
	}},
	{3, []step{
		server(frontEnd, "GET", "/product/{id}", 404, 6*time.Millisecond).root(),
	}},
	{12, []step{
		server(frontEnd, "POST", "/cart", 201, 35*time.Millisecond).root(),
		call(frontEnd, cart, "POST", "/items", 28*time.Millisecond),
		server(cart, "POST", "/items", 201, 24*time.Millisecond),
		postgres(cart, 6*time.Millisecond, "INSERT INTO item VALUES (?, ?, ?)"),
		redis(cart, 500*time.Microsecond, "HSET"),
	}},
	{5, []step{
		server(frontEnd, "POST", "/checkout", 200, 420*time.Millisecond).failing(40).root(),
		call(frontEnd, payments, "POST", "/charge", 390*time.Millisecond).failing(40),
		// The slow endpoint: it waits for the card network.
		server(payments, "POST", "/charge", 200, 380*time.Millisecond).failing(25).slow(12),
		postgres(payments, 9*time.Millisecond, "UPDATE account SET balance = balance - ? WHERE id = ?"),
		queue(payments, "kafka.produce", "producer", 3*time.Millisecond),
		queue(orders, "kafka.consume", "consumer", 55*time.Millisecond).failing(60),
		postgres(orders, 7*time.Millisecond, "INSERT INTO orders VALUES (?, ?, ?, ?)"),
	}},
}

func pick(rnd *rand.Rand) *request {
	n := rnd.IntN(100)
	for i := range menu {
		if n -= menu[i].share; n < 0 {
			return &menu[i]
		}
	}
	panic("BUG: the menu's shares are no hundred")
}

// snapshot returns one span of the step that ends now. Its duration is at least half the
// typical one, with an exponential tail.
func (s *step) snapshot(rnd *rand.Rand, now time.Time) client.Snapshot {
	half := s.typical / 2
	took := half + time.Duration(rnd.ExpFloat64()*float64(half))
	if s.slowOne > 0 && rnd.IntN(s.slowOne) == 0 {
		took *= 10
	}
	return client.Snapshot{
		Key: s.key, Duration: took, End: now, TopLevel: s.entry,
		Error: s.failsOne > 0 && rnd.IntN(s.failsOne) == 0,
	}
}
