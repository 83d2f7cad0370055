// Package destination parses the URLs of upstreams, and explains to an operator why an upstream does not
// respond.
package destination
