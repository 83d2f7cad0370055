// Package ingest holds the daemon's translation of OTLP requests to the agent's own: of random
// requests, each span must have the name, resource, type, service and tags that the code of
// the agent's OTLP ingest gives it, and be counted by package traces without a fault.
//
// It is compared span by span, with the tags that statistics are made of. What the agent then
// makes of such spans is what package traces is compared with elsewhere in this module. The
// names of services and operations are compared as the agent normalizes them, because both
// sides normalize what they are given.
package ingest
