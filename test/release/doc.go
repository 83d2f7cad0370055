// Package release verifies the signatures of tools/sign and of `make dist` with sigstore's own library:
// with the public key, any program based on that library can verify a release.
package release
