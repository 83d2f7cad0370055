// Package prometheus is the module that says which Prometheus server the tests of a fleet
// build, as a tool: with the versions that Prometheus itself asks for, not those of the
// collectors. `make test-fleet` builds it without the service discovery of clouds.
package prometheus
