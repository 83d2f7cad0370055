module github.com/spanstatsd/spanstatsd/test/ring

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/spanstatsd/spanstatsd v0.0.0
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/spanstatsd/spanstatsd => ../..
