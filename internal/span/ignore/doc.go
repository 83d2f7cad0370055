// Package ignore says which spans nobody wants counted, by rules that an operator gives: a label of
// the key, or an attribute of the span, that is a text or that a pattern finds.
//
// Every span meets a List where its key is admitted (package admit), once for a key and interval, so
// a key that is known costs nothing. Attributes are not all in keys: a door whose spans have more of
// them asks the list for theirs while it makes a key, and marks the span (span.Ignored).
//
// Bounds: MaxRules rules of MaxBytes each, which see MaxValue bytes of an attribute. Patterns are RE2, so a
// match takes time in proportion to its text.
//
// Threading: a List is complete before it is used, and never changes from then on.
package ignore
