// Package jaeger is the module that says which Jaeger the tests of a fleet build, as a tool: with the
// versions that Jaeger itself asks for. `make test-fleet` builds it.
package jaeger
