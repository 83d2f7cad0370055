package client_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func Example() {
	socket, stop := startDaemon()
	defer stop()

	c, err := client.Open(client.Config{
		Socket: socket,
		Origin: client.Origin{Service: "web-store", Env: "prod", Lang: "go"},
	})
	if err != nil {
		log.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key: client.Key{
			Service: "web-store", Operation: "http.request", Resource: "GET /users/?", Type: "web",
			Kind: "server", HTTPStatus: 200, TraceRoot: client.TraceRootTrue,
		},
		Duration: 3 * time.Millisecond,
		End:      time.Now(),
		TopLevel: true,
	}})

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
	stats := c.Stats()
	fmt.Println("published", stats.Published, "sent", stats.Sent)
	// Output: published 1 sent 1
}

// A tracer for a router with thousands of routes stores an encoded key for each route.
func ExampleEncodeKey() {
	socket, stop := startDaemon()
	defer stop()
	c, err := client.Open(client.Config{Socket: socket})
	if err != nil {
		log.Fatal(err)
	}
	type route struct{ ok, failed *client.EncodedKey }
	key := client.Key{
		Service: "web-store", Operation: "http.request", Resource: "GET /users/?",
		Kind: "server",
	}
	users := route{ok: client.EncodeKey(key)}
	key.HTTPStatus = 500
	users.failed = client.EncodeKey(key)

	batch := make([]client.Snapshot, 0, 64) // reused for each trace
	batch = append(batch, client.Snapshot{Encoded: users.ok, Duration: time.Millisecond, End: time.Now()})
	batch = append(batch, client.Snapshot{
		Encoded: users.failed, Duration: time.Second, End: time.Now(),
		Error: true,
	})
	fmt.Println(c.Publish(batch))

	if err := c.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: true
}

// Stats counts the spans that could not be sent, by reason.
func ExampleClient_Stats() {
	absent := filepath.Join(os.TempDir(), "no-daemon-here", "spans.sock")
	c, err := client.Open(client.Config{Socket: absent, MaxAway: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	c.Publish(make([]client.Snapshot, 3))
	fmt.Println("buffered", c.Stats().Buffered)

	fmt.Println(c.Close(context.Background()))
	c.Publish(make([]client.Snapshot, 2))
	stats := c.Stats()
	fmt.Println("lost", stats.Lost[client.ReasonClosed], "refused", stats.Refused[client.ReasonClosed])
	// Output:
	// buffered 3
	// close client: 3 spans could not be sent and are lost
	// lost 3 refused 2
}

// startDaemon starts a mock of spanstatsd, which sends a welcome and then only reads.
func startDaemon() (socket string, stop func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	socket = filepath.Join(dir, "spans.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		conn.Write(wire.AppendWelcome(nil, &wire.Welcome{
			Version: wire.Version, MaxFrame: wire.DefaultMaxFrame, MaxBatch: 4096, MaxKeys: 1024,
			Features: wire.Features{Stats: true},
		}))
		for buffer := make([]byte, 4096); err == nil; {
			_, err = conn.Read(buffer)
		}
		conn.Close()
	}()
	return socket, func() {
		listener.Close()
		os.RemoveAll(dir)
	}
}
