// Package zipkin has reporters of Zipkin, unmodified and as they are published, report spans to the
// daemon's own program: each is told where by its one setting, as any application is. Every span that
// they report must be counted once, and every request must go on to whoever is behind, byte for byte.
//
// The tests have the tag languages, since they need what reporters.sh installs: `make test-zipkin`. It is
// a module of its own as every test that builds the program.
package zipkin
