// Package prometheus is the module that pins the Prometheus server for the fleet tests, with the
// dependency versions of Prometheus instead of those of the collectors. `make test-fleet` builds it
// without cloud service discovery.
package prometheus
