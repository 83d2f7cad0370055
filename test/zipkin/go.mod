module github.com/spanstatsd/spanstatsd/test/zipkin

go 1.26.0

replace (
	github.com/spanstatsd/spanstatsd => ../..
	github.com/spanstatsd/spanstatsd/lab => ../../lab
)

require github.com/spanstatsd/spanstatsd/lab v0.0.0

require (
	github.com/DataDog/sketches-go v1.4.8 // indirect
	github.com/spanstatsd/spanstatsd v0.0.0 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
