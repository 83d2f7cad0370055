// Package template learns what varies in resources and endpoints, so that values which come
// once can be counted under a name that says what they are: of /users/17 and /users/4711
// it makes /users/{id}.
//
// A value is taken apart into fills and the skeleton around them. A fill is a piece that
// looks like an identifier by its bytes: a number, a UUID, hexadecimal digits, a random
// token, a date, an address, a value in a query, the literals of an SQL statement. Words are
// no fills, whatever they say. A template is a skeleton with the knowledge at which of its
// blanks fills vary. At the others a value keeps its own text, so two values that differ in
// anything but such a fill never become one.
//
// Which blanks vary is learnt from evidence: how many distinct fills a blank was seen with
// in two intervals. A UUID is evidence by itself, a small number is hardly any: routes are
// named 404 and 2024, and nobody names hundreds of them so. A blank where the same few
// fills come again and again doesn't vary. A template is learnt once each of its blanks is
// decided, and forgotten after two intervals without a value that it explains.
//
// What is not learnt is words that vary, /blog/my-first-post or /users/alice. Nothing tells
// a rare one from the rare route /users/export beside it, so they are left to collapse.
//
// # Threading
//
// Templates is for any goroutine. A Fold belongs to one. Folding reads one immutable
// pointer and atomic words, and takes no lock. Learning takes the lock or, where that is
// taken, leaves the evidence out: there will be more.
//
// # Bounds
//
// A text is valid UTF-8, as labels are once they are mended, and so is its name. It has at
// most 32 pieces between slashes and 8 fills, and as many bytes as the longest
// resource; any other is not understood. The work is linear in its bytes. Templates, those
// of one origin, the origins that learn and what each keeps of skeletons without a template
// are bounded by the constants of this package, and Bytes is the memory of it all. It is
// taken as it is needed. A Fold keeps two texts, of a name and of a statement.
package template
