module github.com/spanstatsd/spanstatsd/bench

go 1.26.0

require (
	github.com/puzpuzpuz/xsync/v4 v4.5.0
	github.com/spanstatsd/spanstatsd v0.0.0
	golang.org/x/sys v0.49.0
)

require github.com/prometheus/procfs v0.22.0 // indirect

replace github.com/spanstatsd/spanstatsd => ../
