package template

// marks are what a stretch of text has.
type marks uint8

const (
	cutsPieces marks = 1 << iota
	cutsInner
	cutsLeaves
	hasDigit
	hasUpper
	hasUnderscore
	hasAt    // @ or %
	hasOther // lower case, what is not ASCII, or no text
)

// bytes says of each byte which of these it is.
var bytes = func() (b [256]marks) {
	for c := range b {
		switch c := byte(c); {
		case isDigit(c):
			b[c] = hasDigit
		case isUpper(c):
			b[c] = hasUpper
		case isLetter(c):
			b[c] = hasOther
		}
	}
	for mark, of := range map[marks]string{
		cutsPieces: " /?&=,;()[]{}\"'|#<>\\\t\n\r", cutsInner: ":@+~!$*^`", cutsLeaves: ".-_", hasAt: "@%", hasUnderscore: "_",
	} {
		for i := range len(of) {
			b[of[i]] |= mark
		}
	}
	for c := range b {
		if b[c] == 0 {
			b[c] = hasOther
		}
	}
	return b
}()

// next is where a stretch from here on ends, at one of the separators, and what it has.
func next(text string, from int, separators marks) (to int, has marks) {
	for to = from; to < len(text); to++ {
		mark := bytes[text[to]]
		if mark&separators != 0 {
			break
		}
		has |= mark
	}
	return to, has
}
