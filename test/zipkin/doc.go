// Package zipkin tests the daemon binary with unmodified, published Zipkin reporters. As in any
// application, a single setting tells a reporter where to send. Every reported span must be counted
// once, and every request must be forwarded to the upstream Zipkin unchanged, byte for byte.
//
// The tests have the build tag languages, since they need the programs installed by reporters.sh: `make
// test-zipkin`. The package is a separate module, like every test that builds the program.
package zipkin
