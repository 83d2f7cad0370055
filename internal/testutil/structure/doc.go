// Package structure has tests only: of the imports between the packages of this repository, of the
// sizes of tracked files, and of the paths that docs/architecture.md names.
package structure
