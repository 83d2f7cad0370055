// Package demo shows the whole program at work with nothing else needed: a
// stand-in agent or collector, or what scrapes, which is a real Prometheus where one is
// installed; the daemon as it is; and the synthetic tracers of a small web
// shop that link the real client and write to the real socket.
//
// It owns the shop and the counts of what the shop's tracers sent. At
// the end it holds that against what the stand-in counted, or was scraped, figure by
// figure, and against the daemon's books. It is a test that a person can watch:
// it passes only if nothing was lost.
//
// One goroutine generates the traffic, one shows reports, and one looks at what is scraped;
// everything else that runs belongs to the rooms that it starts. Its memory is bounded by the
// shop, which has a fixed menu.
package demo
