package workload

import (
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// shape is what is new in each key of a flood.
type shape struct {
	name     string
	write    func(*writer, *span.Key)
	honest   func(i int, k *span.Key) // what else each honest key beside it has, by its number
	numbered bool                     // each key is given a number, and the number used once
	// hostile: no application makes it, since a status has three digits, and agents ask for 44 peer tags
	hostile bool
}

// shapes are what applications fill budgets with, and what costs most to make normal. What
// is new has another length each time, but for adversarial.
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
	{name: "long", write: longResources},
	{name: "numbered", write: urls, numbered: true},
	{name: "adversarial", write: fixedLengths},
	{name: "status", write: statuses, hostile: true},
	{name: "many-tags", write: manyTags, hostile: true},
}

// Shapes are the names of the shapes of floods.
func Shapes() (names []string) {
	for i := range shapes {
		names = append(names, shapes[i].name)
	}
	return names
}

// urls: a server names its resources by what was asked for.
func urls(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPStatus, k.HTTPMethod = "web", "server", 200, "GET"
	w.label(span.LabelResource).text("GET /api/v2/").one("users", "orders", "carts",
		"invoices").text("/").random(digits, 6, 18)
	w.text("/").one("items", "lines", "events").text("/").random(hexes, 4, 32)
}

// tenant is a dimension that an operator has named.
const tenant = "tenant.id:"

// dimensions: a dimension of an operator's own has a value that is new each time, behind a few routes.
func dimensions(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPStatus, k.HTTPMethod = "web", "server", 200, "GET"
	w.label(span.LabelHTTPEndpoint).one("/cart", "/order", "/search")
	w.label(span.LabelPeerTag).text(tenant).random(hexes, 8, 32)
}

// ofTenant: honest keys are of forty tenants.
func ofTenant(i int, k *span.Key) { k.PeerTags = []string{tenant + word(i%40)} }

// word is a number of three digits, said as a word.
func word(n int) string {
	syllables := [...]string{"ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "ru"}
	return syllables[n/100%10] + syllables[n/10%10] + syllables[n%10] + "s"
}

// sql: literals in statements.
func sql(w *writer, k *span.Key) {
	k.Type, k.Kind = "sql", "client"
	w.label(span.LabelResource).text("SELECT id, total FROM orders WHERE customer = '").random(spoken, 6, 30)
	w.text("' AND placed > ").random(digits, 5, 12).text(" LIMIT ").random(digits, 1, 3)
}

// peers: a client names whom it calls by address.
func peers(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	w.label(span.LabelPeerTag).text("network.destination.ip:10.").address().text(":").random(digits, 4, 5)
	w.label(span.LabelPeerTag).text("out.host:ip-").address().text(".").random(lower, 4, 12).text(".internal")
	w.label(span.LabelPeerTag).text("peer.hostname:pod-").random(hexes, 6, 20)
}

// address appends the last three numbers of an address of version 4.
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

// endpoints: ids in what should be the route, and so in the resource that names it.
func endpoints(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPStatus, k.HTTPMethod = "web", "server", 200, "POST"
	begin := len(w.buffer)
	w.label(span.LabelHTTPEndpoint).text("/api/v1/tenants/").random(lower, 3, 12).text("/jobs/").random(hexes,
		6, 32)
	path := w.buffer[begin:]
	w.label(span.LabelResource).text("POST ")
	w.buffer = append(w.buffer, path...)
}

// newOperations: operations with what was done in them, to be written otherwise.
func newOperations(w *writer, k *span.Key) {
	k.Kind = "internal"
	w.label(span.LabelOperation).text("Order Service.handle#").random(digits, 5, 12).text(" (").random(lower,
		3, 10).text(")")
}

// newServices: a service for each process, to be written otherwise.
func newServices(w *writer, k *span.Key) {
	k.Kind = "internal"
	w.label(span.LabelService).text("Payment Worker #").random(digits, 5, 12).text(" (eu-").random(lower, 3,
		20).text(")")
}

// capitalNames: names that must be written in lower case.
func capitalNames(w *writer, k *span.Key) {
	k.Type, k.Kind = "web", "server"
	w.label(span.LabelService).one("Checkout-", "PAYMENT-", "Order-API-").random(capitals, 5, 40)
	w.label(span.LabelOperation).text("Servlet.Request").random(capitals, 0, 20)
	w.label(span.LabelResource).text("OrderService.").random(capitals, 6, 40)
}

// unicodeNames: names of several bytes a letter.
func unicodeNames(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	w.label(span.LabelService).text("laden-").unicode(4, 25)
	w.label(span.LabelOperation).text("anfrage.").unicode(1, 12).random(lower, 2, 9)
	w.label(span.LabelResource).text("GET /").unicode(6, 60)
	w.label(span.LabelPeerTag).text("peer.service:").unicode(4, 30)
}

// invalidUTF8: texts of another encoding.
func invalidUTF8(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	w.label(span.LabelService).text("gesch\xe4ft-").random(broken, 4, 30)
	w.label(span.LabelOperation).text("gr\xfc\xdfe.").random(broken, 4, 20)
	w.label(span.LabelResource).text("GET /stra\xdfe/").random(broken, 8, 80)
	w.label(span.LabelPeerTag).text("peer.service:b\xfcro-").random(broken, 4, 30)
}

// sixteenTags are of those that agents ask for, in no order.
var sixteenTags = [...]string{
	"peer.service", "db.system", "out.host", "aws.s3.bucket", "server.address", "topicname", "db.name",
	"rpc.service",
	"mongodb.db", "net.peer.name", "hostname", "queuename", "streamname", "db.instance", "grpc.host",
	"bucketname",
}

// unorderedTags: peer tags, each of them new.
func unorderedTags(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	for _, name := range sixteenTags {
		w.label(span.LabelPeerTag).text(name).text(":").random(lower, 4, 14).text("-").random(hexes, 4, 12)
	}
}

// AdditionalTags are the names of the additional tags of floods.
var AdditionalTags = [...]string{"tier", "customer", "region", "cart"}

// additionalTags: tags that an operator chose, some with values over 200 bytes.
func additionalTags(w *writer, k *span.Key) {
	k.Kind = "internal"
	for _, name := range AdditionalTags {
		w.label(span.LabelAdditionalTag).text(name).text(":").random(lower, 6, 60)
		if w.rnd.IntN(8) == 0 {
			w.random(lower, 140, 300)
		}
	}
}

// statuses: noise where a status stands.
func statuses(w *writer, k *span.Key) {
	k.Type, k.Kind, k.HTTPMethod = "web", "server", "GET"
	k.HTTPStatus = w.rnd.Uint32N(1 << w.between(18, 28))
}

// longResources: statements of some hundred bytes to more than are kept, each length in
// the logarithm as often as another.
func longResources(w *writer, k *span.Key) {
	k.Type, k.Kind = "sql", "client"
	w.label(span.LabelResource).text("INSERT INTO events VALUES ('").random(hexes, 8, 16)
	for left := int(300 * math.Exp(w.rnd.Float64()*math.Log(8000/300))); left > 0; left -= 50 {
		w.text("', 'a value that is much like the others'), ('").random(hexes, 4, 8)
	}
	w.text("')")
}

// fixedLengths is adversarial: all labels new, each as long as the one before.
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

// manyTags: as many tags as a message may have, each to be mended.
func manyTags(w *writer, k *span.Key) {
	k.Type, k.Kind = "http", "client"
	for i := range 256 {
		w.label(span.LabelPeerTag).text("peer.tag.")
		w.buffer = strconv.AppendInt(w.buffer, int64(i), 10)
		w.text(":b\xfcro-").random(broken, 4, 16)
	}
}
