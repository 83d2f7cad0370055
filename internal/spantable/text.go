package spantable

import "unsafe"

// Text is a place in the body, or with the top bit of At in the bytes that were made of it. No
// body is as long as to need that bit.
type Text struct{ At, Len uint32 }

const inMade = 1 << 31

// TextBits is a text as the bits of a tag.
func TextBits(t Text) uint64 { return uint64(t.Len)<<32 | uint64(t.At) }

// BitsText is the text of such bits.
func BitsText(bits uint64) Text { return Text{At: uint32(bits), Len: uint32(bits >> 32)} }

// View is bytes as a string, without copying them. It is good for as long as they are not
// written again.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
