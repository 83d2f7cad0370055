package template

// looks is what a stretch of text looks like.
type looks struct {
	digits, uppers, lowers, dashes, others int
	hex                                    int // letters that are hexadecimal digits
	borders                                int // between letters and digits
	changes                                int // between digits, upper and lower case
	pairs                                  int // of neighbouring upper case letters
}

// In a random identifier nobody can foretell of what class the next byte is, a processor
// neither. So look has no branch within its loop: what each byte counts for is added up in
// parts of one number, and what each two neighbours count for in parts of another.
const (
	countBits = 8                // of each count of bytes
	block     = 1<<countBits - 1 // bytes of which none overflows
	pairBits  = 16               // of each count of neighbours
	classAt   = 62               // of a byte, above its counts, where what overflows is lost
)

// The classes of bytes, and of what stands before the first.
const (
	digits = iota
	uppers
	lowers
	neither
	nothing
)

// bytesLook is what a byte counts for, and its class.
var bytesLook = func() (of [256]uint64) {
	for c := range of {
		c, class, counts := byte(c), neither, uint64(0)
		count := func(at int) { counts += 1 << (countBits * at) }
		switch {
		case isDigit(c):
			class = digits
		case isUpper(c):
			class = uppers
		case isLetter(c):
			class = lowers
		}
		switch {
		case class != neither:
			count(class)
		case c == '-' || c == '_':
			count(3)
		default:
			count(4)
		}
		if isHex(c) && class != digits {
			count(5)
		}
		of[c] = counts | uint64(class)<<classAt
	}
	return of
}()

// neighboursLook is what two neighbours count for, by their classes.
var neighboursLook = func() (of [nothing + 1][neither + 1]uint64) {
	for last := range nothing {
		for class := range neither + 1 {
			at := &of[last][class]
			switch {
			case class == last && class == uppers:
				*at = 1 << (2 * pairBits)
			case class == last:
			case class == digits || last == digits:
				*at = 1<<pairBits + 1
			default:
				*at = 1
			}
		}
	}
	return of
}()

func look(text string) (l looks) {
	last, neighbours := uint64(nothing), uint64(0)
	for text != "" {
		part, counts := text[:min(len(text), block)], uint64(0)
		text = text[len(part):]
		for i := range len(part) {
			of := bytesLook[part[i]]
			counts += of
			neighbours += neighboursLook[last][of>>classAt]
			last = of >> classAt
		}
		l.add(counts)
	}
	const most = 1<<pairBits - 1
	l.changes, l.borders, l.pairs = int(neighbours&most), int(neighbours>>pairBits&most), int(neighbours>>(2*pairBits)&most)
	return l
}

// add adds the counts of bytes.
func (l *looks) add(counts uint64) {
	count := func(at int) int { return int(counts >> (countBits * at) & (1<<countBits - 1)) }
	l.digits += count(0)
	l.uppers += count(1)
	l.lowers += count(2)
	l.dashes += count(3)
	l.others += count(4)
	l.hex += count(5)
}
