package client

import (
	"testing"
	"time"
)

// A client reports the unsettled spans of a crashed daemon as lost, but none of a daemon that shut down
// gracefully or never reports settled spans.
func TestConnection_UnsettledSpansReportedToNext(t *testing.T) {
	const handed = 70
	for name, test := range map[string]struct {
		settles bool
		before  func(t *testing.T, d *fakeDaemon, c *Client)
		end     func(d *fakeDaemon)
		want    uint64
	}{
		"it has reported nothing": {true, nil, (*fakeDaemon).kill, handed},
		"it has reported some spans": {true, func(t *testing.T, d *fakeDaemon, c *Client) {
			changes := c.Features()
			d.settle(30)
			d.settle(20) // it never decreases
			changes.PeerTags = []string{"seen"}
			d.setFeatures(changes)
			<-c.FeatureChanges() // the previous messages were read
		}, (*fakeDaemon).kill, handed - 30},
		"it has reported all spans": {true, func(t *testing.T, d *fakeDaemon, c *Client) {
			if err := c.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, (*fakeDaemon).kill, 0},
		"it stops gracefully":            {true, nil, (*fakeDaemon).stop, 0},
		"it never reports settled spans": {false, nil, (*fakeDaemon).kill, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDaemon(t)
			d.settles = test.settles
			d.start()
			c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond})
			c.Publish(sampleBatch(handed))
			eventually(t, "the daemon has all",
				func() bool { return d.spansSeen() == handed && c.Stats().Sent == handed })
			if test.before != nil {
				test.before(t, d, c)
			}
			connects := c.Stats().Connects
			test.end(d)
			d.start()
			eventually(t, "the client is reconnected", func() bool { return c.Stats().Connects == connects+1 })
			c.Publish(sampleBatch(1))
			eventually(t, "the next daemon has more", func() bool { return d.spansSeen() == handed+1 })
			if got := c.Stats().Unconfirmed; got != test.want {
				t.Errorf("%d spans are unconfirmed, want %d", got, test.want)
			}
			mustClose(t, c)
			d.see(func() {
				if got := d.lost[ReasonDaemonDied]; got != test.want || len(d.lost) > 1 {
					t.Errorf("the next daemon was notified of %v, want %d", d.lost, test.want)
				}
			})
			stats := c.Stats()
			if _, is := stats.Lost[ReasonDaemonDied]; is || stats.Sent != handed+1 ||
				stats.Published != handed+1 {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}
