package mask

import "strings"

// maxText is the longest resource that statistics have. A longer text has no mask.
const maxText = 5000

// Append appends the mask of a text. It reports false, and appends nothing, where the text has
// no identifier or is a mask already.
func Append(dst []byte, text string) (masked []byte, ok bool) {
	if len(text) < 2 || len(text) > maxText {
		return dst, false
	}
	if word := statementWord(text); word != "" {
		if masked, ok = appendStatement(dst, text, word); ok {
			return masked, true
		}
		if hasWord(withoutComment(text), word) {
			return dst, false // a statement without literals, or one whose literals nobody can tell
		}
	}
	if hasPlaceholder(text) {
		return dst, false
	}
	m := masker{text: text, dst: dst, isPath: strings.IndexByte(text, '/') >= 0}
	m.pieces()
	if m.copied == 0 {
		return dst, false
	}
	return append(m.dst, text[m.copied:]...), true
}
