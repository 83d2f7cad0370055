// Package demo runs the whole system without other installed software: a mock agent or
// collector, or a scraper, which is a real Prometheus if one is installed; the real daemon; and
// synthetic tracers of a small web shop that use the real client and write to the real socket.
//
// It owns the shop and the totals that the shop's tracers sent. At the end it compares each
// total with the one that the destination counted or scraped, and with the daemon's accounting.
// So the demo is also a test: it passes only if nothing was lost.
//
// One goroutine generates the traffic, one prints reports, and one reads scraped totals; all
// other goroutines belong to the packages that the demo starts. Memory is bounded by the shop,
// which has a fixed menu.
package demo
