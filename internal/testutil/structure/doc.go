// Package structure contains tests of the repository itself: which packages import each other, how large tracked files
// are, and whether the paths in docs/architecture.md exist.
package structure
