// Package destination parses the URLs of upstreams, and advises an operator about one that does not
// answer.
package destination
