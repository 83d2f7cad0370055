// Package spantable is the spans of one body, laid flat: what every decoder fills and every
// rule looks at, whatever the format.
//
// A Table has a Span for each span, a Tag for each tag that some rule asks for, a Group for each
// run of spans that belong together, and a Sender for each process that says who it is. They
// hold no pointers: a text is a place in the body, or in the bytes that were made of it. What
// only one format knows of a span (where its bytes lie, say) stands in slices of that format, by
// the span's number.
//
// Which tags a rule asks for is a table of Names: it gives each a Label, and every other name
// the label Other. Selected finds the tags of one span by their labels.
//
// # Bounds
//
// Limits says how many spans, tags and strings a body may have, by its length alone, and how
// many bytes may be made of it. Charge bounds the bytes of text that are looked at, since a body
// may refer to one text many times. What exceeds a bound fails the table with ErrTooMuch.
//
// # Threading
//
// One goroutine at a time uses a Table or a Selected. Their memory is used again for the next
// body. Names never change.
package spantable
