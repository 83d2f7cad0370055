package daemon_test

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// A client learns from the welcome message when the daemon's interval ends, and sends its spans before.
// With its own settings it would keep them for an hour.
func TestClient_SendsBeforeIntervalEnds(t *testing.T) {
	p := startPair(t, nil)
	c, err := client.Open(client.Config{
		Socket: p.socket, MaxAge: time.Hour,
		Origin: client.Origin{Service: "shop"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish(batch(3, "r"))
	eventually.True(t, "the published spans to be received", func() bool { return p.Accounting().Received == 3 })
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	p.stop()
}
