package workload

import (
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// shape defines the new part of each key of a flood.
type shape struct {
	name     string
	write    func(*writer, *span.Key)
	honest   func(i int, k *span.Key) // adds labels to a regular key, given its number
	numbered bool                     // each key is defined as a number, which is used once
	// no application generates it, because a status has three digits and agents request 44 peer
	// tags
	hostile bool
}

// shapes are typical causes of exceeded budgets, and the keys that are most expensive to
// normalize. The new part has a different length each time, except in adversarial.
var shapes = []shape{
	{name: "urls", write: urls},
	{name: "sql", write: sql},
	{name: "peers", write: peers},
	{name: "endpoints", write: endpoints},
	{name: "operations", write: newOperations},
	{name: "services", write: newServices},
	{name: "capitals", write: capitalNames},
	{name: "unicode", write: unicodeNames},
	{name: "invalid-utf8", write: invalidUTF8},
	{name: "tags", write: unorderedTags},
	{name: "additional", write: additionalTags},
	{name: "dimension", write: dimensions, honest: ofTenant},
	{name: "servers", write: servers, honest: toServer},
	{name: "models", write: models, honest: ofModel},
	{name: "long", write: longResources},
	{name: "numbered", write: urls, numbered: true},
	{name: "adversarial", write: fixedLengths},
	{name: "status", write: statuses, hostile: true},
	{name: "many-tags", write: manyTags, hostile: true},
}

// Shapes returns the names of the shapes of floods.
func Shapes() (names []string) {
	for i := range shapes {
		names = append(names, shapes[i].name)
	}
	return names
}

// urls: a server uses the requested URL as resource.
func urls(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPStatus, k.HTTPMethod = "web", "server", 200, "GET"
	w.label(span.LabelResource).text("GET /api/v2/").one("users", "orders", "carts",
		"invoices").text("/").random(digits, 6, 18)
	w.text("/").one("items", "lines", "events").text("/").random(hexes, 4, 32)
}

// tenant is a dimension configured by the operator.
const tenant = "tenant.id:"

// dimensions: a dimension configured by the operator has a new value each time, on a few
// routes.
func dimensions(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPStatus, k.HTTPMethod = "web", "server", 200, "GET"
	w.label(span.LabelHTTPEndpoint).one("/cart", "/order", "/search")
	w.label(span.LabelPeerTag).text(tenant).random(hexes, 8, 32)
}

// ofTenant adds one of forty tenants to a regular key.
func ofTenant(i int, k *span.Key) { k.PeerTags = []string{tenant + word(i%40)} }

// servers: a client calls a new address each time, such as those of pods.
func servers(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPMethod = "http", "client", "GET"
	w.label(span.LabelPeerTag).text(server).random(hexes, 6, 20).text(".shop.svc.cluster.local")
}

const server = "server.address:"

// toServer adds one of forty servers to a regular key.
func toServer(i int, k *span.Key) { k.PeerTags = []string{server + word(i%40)} }

// models: a client of language models has a new model each time, such as those fine-tuned per customer.
func models(w *writer, k *span.Key) {
	k.Kind = "client"
	w.label(span.LabelResource).text("chat")
	w.label(span.LabelPeerTag).text(model).text("ft:gpt-4o:").random(lower, 4, 12).text(":").random(digits, 4, 12)
}

const model = "gen_ai.request.model:"

// ofModel adds one of forty models to a regular key.
func ofModel(i int, k *span.Key) { k.PeerTags = []string{model + word(i%40)} }

// word returns a number of three digits, spelled in letters.
func word(n int) string {
	syllables := [...]string{"ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "ru"}
	return syllables[n/100%10] + syllables[n/10%10] + syllables[n%10] + "s"
}

// sql: statements contain literals.
func sql(w *writer, k *span.Key) {
	k.Type, k.Kind = "sql", "client"
	w.label(span.LabelResource).text("SELECT id, total FROM orders WHERE customer = '").random(spoken, 6, 30)
	w.text("' AND placed > ").random(digits, 5, 12).text(" LIMIT ").random(digits, 1, 3)
}

// peers: a client names its servers by address.
func peers(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	w.label(span.LabelPeerTag).text("network.destination.ip:10.").address().text(":").random(digits, 4, 5)
	w.label(span.LabelPeerTag).text("out.host:ip-").address().text(".").random(lower, 4, 12).text(".internal")
	w.label(span.LabelPeerTag).text("peer.hostname:pod-").random(hexes, 6, 20)
}

// address appends the last three bytes of an IPv4 address.
func (w *writer) address() *writer {
	random := w.rnd.Uint64()
	for i := range 3 {
		if i > 0 {
			w.text(".")
		}
		w.buffer = strconv.AppendUint(w.buffer, random>>(8*i)&0xff, 10)
	}
	return w
}

// endpoints: the route contains IDs, and so does the resource derived from it.
func endpoints(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPStatus, k.HTTPMethod = "web", "server", 200, "POST"
	begin := len(w.buffer)
	w.label(span.LabelHTTPEndpoint).text("/api/v1/tenants/").random(lower, 3, 12).text("/jobs/").random(hexes,
		6, 32)
	path := w.buffer[begin:]
	w.label(span.LabelResource).text("POST ")
	w.buffer = append(w.buffer, path...)
}

// newOperations: operations contain IDs, and need normalization.
func newOperations(w *writer, k *span.Key) {
	k.Kind = "internal"
	w.label(span.LabelOperation).text("Order Service.handle#").random(digits, 5, 12).text(" (").random(lower,
		3, 10).text(")")
}

// newServices: each process has its own service, which needs normalization.
func newServices(w *writer, k *span.Key) {
	k.Kind = "internal"
	w.label(span.LabelService).text("Payment Worker #").random(digits, 5, 12).text(" (eu-").random(lower, 3,
		20).text(")")
}

// capitalNames: names need conversion to lower case.
func capitalNames(w *writer, k *span.Key) {
	k.Type, k.Kind = "web", "server"
	w.label(span.LabelService).one("Checkout-", "PAYMENT-", "Order-API-").random(capitals, 5, 40)
	w.label(span.LabelOperation).text("Servlet.Request").random(capitals, 0, 20)
	w.label(span.LabelResource).text("OrderService.").random(capitals, 6, 40)
}

// unicodeNames: letters of names have several bytes.
func unicodeNames(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	w.label(span.LabelService).text("laden-").unicode(4, 25)
	w.label(span.LabelOperation).text("anfrage.").unicode(1, 12).random(lower, 2, 9)
	w.label(span.LabelResource).text("GET /").unicode(6, 60)
	w.label(span.LabelPeerTag).text("peer.service:").unicode(4, 30)
}

// invalidUTF8: texts are in another encoding.
func invalidUTF8(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	w.label(span.LabelService).text("gesch\xe4ft-").random(broken, 4, 30)
	w.label(span.LabelOperation).text("gr\xfc\xdfe.").random(broken, 4, 20)
	w.label(span.LabelResource).text("GET /stra\xdfe/").random(broken, 8, 80)
	w.label(span.LabelPeerTag).text("peer.service:b\xfcro-").random(broken, 4, 30)
}

// sixteenTags are sixteen of the peer tags that agents request, unsorted.
var sixteenTags = [...]string{
	"peer.service", "db.system", "out.host", "aws.s3.bucket", "server.address", "topicname", "db.name",
	"rpc.service",
	"mongodb.db", "net.peer.name", "hostname", "queuename", "streamname", "db.instance", "grpc.host",
	"bucketname",
}

// unorderedTags: peer tags are unsorted, and each has a new value.
func unorderedTags(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	for _, name := range sixteenTags {
		w.label(span.LabelPeerTag).text(name).text(":").random(lower, 4, 14).text("-").random(hexes, 4, 12)
	}
}

// AdditionalTags are the names of the additional tags of floods.
var AdditionalTags = [...]string{"tier", "customer", "region", "cart"}

// additionalTags: tags configured by the operator, some with values over 200 bytes.
func additionalTags(w *writer, k *span.Key) {
	k.Kind = "internal"
	for _, name := range AdditionalTags {
		w.label(span.LabelAdditionalTag).text(name).text(":").random(lower, 6, 60)
		if w.rnd.IntN(8) == 0 {
			w.random(lower, 140, 300)
		}
	}
}

// statuses: random status codes.
func statuses(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPMethod = "web", "server", "GET"
	k.HTTPStatus = w.rnd.Uint32N(1 << w.between(18, 28))
}

// longResources: statements from some hundred bytes to more than the limit, with lengths evenly
// distributed on a logarithmic scale.
func longResources(w *writer, k *span.Key) {
	k.Type, k.Kind = "sql", "client"
	w.label(span.LabelResource).text("INSERT INTO events VALUES ('").random(hexes, 8, 16)
	for left := int(300 * math.Exp(w.rnd.Float64()*math.Log(8000/300))); left > 0; left -= 50 {
		w.text("', 'a value that is much like the others'), ('").random(hexes, 4, 8)
	}
	w.text("')")
}

// fixedLengths is adversarial: all labels are new, and all have the same length.
func fixedLengths(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	serial := w.serial
	for _, l := range [...]span.Label{
		span.LabelService, span.LabelOperation, span.LabelResource,
		span.LabelPeerTag,
	} {
		w.serial = serial
		w.label(l).text(fixedTexts[l]).count()
	}
}

var fixedTexts = map[span.Label]string{
	span.LabelService: serviceLabel, span.LabelOperation: operationLabel, span.LabelResource: resourceLabel,
	span.LabelPeerTag: hostLabel,
}

// manyTags: the maximum number of tags in a message, each in need of normalization.
func manyTags(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	for i := range 256 {
		w.label(span.LabelPeerTag).text("peer.tag.")
		w.buffer = strconv.AppendInt(w.buffer, int64(i), 10)
		w.text(":b\xfcro-").random(broken, 4, 16)
	}
}
