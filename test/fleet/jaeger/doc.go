// Package jaeger is the module that pins the Jaeger for the fleet tests, with the dependency versions
// of Jaeger. `make test-fleet` builds it.
package jaeger
