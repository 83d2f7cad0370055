// Package structure holds the repository to the shape that its documents promise,
// so that a reader can rely on them. It has tests only, and they run with all
// others:
//
//   - no file is longer than 300 lines, no function longer than 60 and no line wider
//     than 110 columns; no type has more than 25 methods, no struct more than 20 fields
//   - of the references between the files of a package one in twenty points up at most
//   - each package opens with an essay
//   - a package imports of ours only what the table of rooms allows, so that
//     references point downwards, as the way of a span does
//   - each walk in docs/architecture.md names functions that are there and
//     that call one another in this order
//
// The tests read the source of client, cmd, internal and lab with go/parser and change
// nothing. Tests are not measured: a table of cases may be as long as it likes.
package structure
