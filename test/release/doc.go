// Package release holds what tools/sign writes, and what `make dist` signs, to sigstore's own
// library: whoever has the public key can check a release with any program of that family.
package release
