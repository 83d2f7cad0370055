//go:build browser

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// edges are the requests of a small shop with a flow in both directions between two services, and with hostile names.
var edges = []struct {
	service, kind, peer string
	isRoot              bool
}{
	{"front-end", "server", "", true},
	{"front-end", "client", "peer.service:cart", false},
	{"front-end", "client", "peer.service:payments", false},
	{"cart", "client", "db.namespace:items", false},
	{"payments", "client", "peer.service:front-end", false},
	{"payments", "producer", "messaging.destination.name:orders.created", false},
	{"orders", "consumer", "messaging.destination.name:orders.created", false},
	{"orders", "client", "server.address:" + hostile[0], false},
	{"orders", "client", "server.address:" + hostile[3], false},
}

// nodes is the number of nodes of edges: user, four services, items, orders.created, and two hostile names.
const nodes = 9

// TestServiceGraph_Picture shows the service graph of a daemon under load. The picture has each node and edge, in
// windows of every width, and the table has the names and numbers of /status.
func TestServiceGraph_Picture(t *testing.T) {
	t.Parallel()
	address, socket := startDaemon(t, nil, "--prometheus", "--service-graph")
	publishEdges(t, socket)
	p := newProxy(t, address)
	b := openBrowser(t)
	b.dress(1280, "light", "no-preference")
	b.open(p)
	b.await(fmt.Sprintf(`document.querySelectorAll("#edge-rows tr").length === %d`, len(edges)))
	if alerts := ask[int](b, `document.querySelectorAll("#service-graph img, #service-graph script").length`); alerts > 0 {
		t.Error("the name of a node became markup")
	}
	for _, width := range []int64{1280, 800, 400, 320} {
		b.dress(width, "light", "no-preference")
		b.await(fmt.Sprintf(`innerWidth === %d`, width))
		before := ask[string](b, `document.documentElement.dataset.at`)
		b.await(fmt.Sprintf(`document.documentElement.dataset.at !== %q`, before))
		if got := ask[int](b, `document.querySelectorAll("#graph .node").length`); got != nodes {
			t.Errorf("width %d: %d nodes, want %d", width, got, nodes)
		}
		if got := ask[int](b, `document.querySelectorAll("#graph .edge").length`); got != len(edges) {
			t.Errorf("width %d: %d edges, want %d", width, got, len(edges))
		}
		if wide := ask[int64](b, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("width %d: the page is %d wide", width, wide)
		}
		outside := ask[[]string](b, `[...document.querySelectorAll("#graph .node")].filter((e) => {
			const box = e.getBoundingClientRect(), all = document.getElementById("graph").getBoundingClientRect();
			return box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1;
		}).map((e) => e.textContent)`)
		overlapping := ask[[]string](b, `(() => {
			const boxes = [...document.querySelectorAll("#graph .node .box")].map((e) => e.getBoundingClientRect());
			return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
				a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(() => "node " + i));
		})()`)
		if len(outside)+len(overlapping) > 0 {
			t.Errorf("width %d: %q are outside of the picture, %q overlap", width, outside, overlapping)
		}
		b.picture(fmt.Sprint("graph-", width))
	}
	now := ask[shown](b, readFigures)
	answer, names := p.answer(now.At), 0
	for _, figure := range now.Figures {
		if strings.HasPrefix(figure[0], "service_graph.") {
			names++
			if want := figureIn(t, answer, figure[0]); figure[1] != want {
				t.Errorf("%s is %q on the page and %q in /status", figure[0], figure[1], want)
			}
		}
	}
	if names != 2*len(edges) {
		t.Errorf("%d names in the table, want %d", names, 2*len(edges))
	}
	b.expectNoComplaints()
}

// publishEdges publishes the spans of edges until the test ends.
func publishEdges(t *testing.T, socket string) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	clients := map[string]*client.Client{}
	for _, e := range edges {
		if clients[e.service] == nil {
			c, err := client.Open(client.Config{
				Socket: socket, MaxAge: 20 * time.Millisecond, Origin: client.Origin{Service: e.service, Lang: "go"},
			})
			if err != nil {
				t.Fatal(err)
			}
			clients[e.service] = c
		}
	}
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			for j, e := range edges {
				key := client.Key{Service: e.service, Operation: "call", Kind: e.kind, TraceRoot: client.TraceRootFalse}
				if e.isRoot {
					key.TraceRoot = client.TraceRootTrue
				}
				if e.peer != "" {
					key.PeerTags = []string{e.peer}
				}
				clients[e.service].Publish([]client.Snapshot{{
					Key: key, Duration: time.Duration(j+1) * time.Millisecond, End: time.Now(), Error: i%10 == 0 && j%3 == 0,
				}})
			}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		for _, c := range clients {
			c.Close(t.Context())
		}
	})
}
