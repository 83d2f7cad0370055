// Package ignore implements the rules of --ignore, which exclude spans from the statistics.
//
// A rule compares a label of the key, or an attribute of the span, with a text or a regular expression.
//
// The registry checks a key when it sees the key for the first time in an interval (package admit), so the
// check costs nothing for known keys. Not all attributes are part of the key. For rules about other attributes,
// the receiver evaluates List.MatchesAttribute while it builds the key, and marks the span with span.Ignored.
//
// Concurrency: a List does not change after Parse has returned it.
//
// Limits: MaxRules rules of MaxBytes bytes each, and MaxValue bytes of an attribute. Regular expressions have
// the RE2 syntax, so matching takes time linear in the length of the text.
package ignore
