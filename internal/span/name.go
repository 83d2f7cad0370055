package span

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// The agent rewrites the names of services and operations in everything that it
// receives. It is done here first, so that two spellings which it would write
// alike meet in one aggregate: what it merges afterwards is less exact.

const unnamedOperation = "unnamed_operation"

// appendUnnamed appends the service of a span that names none.
func appendUnnamed(dst []byte, lang string) []byte {
	dst = append(dst, "unnamed-"...)
	if lang != "" {
		dst = append(append(dst, lang...), '-')
	}
	return append(dst, "service"...)
}

// classes says of each byte what it may be in a name, because most of normalising a
// key is finding that its names can stay.
var classes = func() (classes [256]uint8) {
	for c := range classes {
		switch c := byte(c); {
		case c >= 'a' && c <= 'z':
			classes[c] = letter | ofOperation | ofService
		case c >= 'A' && c <= 'Z':
			classes[c] = letter | ofOperation
		case c >= '0' && c <= '9':
			classes[c] = ofOperation | ofService
		case c == '.':
			classes[c] = separator | ofService
		case c == '_':
			classes[c] = separator
		case c == '-' || c == '/' || c == ':':
			classes[c] = ofService
		}
	}
	return classes
}()

const (
	ofService   = 1 << iota // stays in a service
	letter                  // of ASCII
	ofOperation             // stays in an operation, wherever it stands
	separator               // stays in an operation unless it follows '_'
)

// serviceBytes are by byte what it becomes in a service: itself, or in lower case where it
// stays so, or '_'.
var serviceBytes = func() (becomes [256]byte) {
	for c := range becomes {
		switch class := classes[c]; {
		case class&ofService != 0:
			becomes[c] = byte(c)
		case class&letter != 0:
			becomes[c] = byte(c) + 'a' - 'A'
		default:
			becomes[c] = '_'
		}
	}
	return becomes
}()

// isOperationName says whether a name can stay.
func isOperationName(name string) bool {
	return name != "" && len(name) <= MaxOperation && classes[name[0]]&letter != 0 &&
		name[len(name)-1] != '_' && hasOperationBytes(name)
}

// hasOperationBytes says whether a name that begins with a letter can stay but for its end.
// It can with '_' behind '.', which rewriting would not leave.
func hasOperationBytes(name string) bool {
	if len(name) < wordBytes {
		for i := 1; i < len(name); i++ {
			class := classes[name[i]]
			if class&ofOperation == 0 && (class&separator == 0 || name[i-1] == '_') {
				return false
			}
		}
		return true
	}
	last := len(name) - wordBytes
	for at := 0; at < last; at += wordBytes {
		if !isOfOperation(wordAt(name, at)) ||
			name[at+wordBytes-1] == '_' && classes[name[at+wordBytes]]&separator != 0 {
			return false
		}
	}
	return isOfOperation(wordAt(name, last))
}

// isOfOperation says whether eight bytes can stay, whatever stands before them.
func isOfOperation(word uint64) bool {
	under := within(word, '_', '_')
	separators := under | within(word, '.', '.')
	return (lettersAndDigits(word)|separators)&^word == highs && under<<8&separators == 0
}

// lettersAndDigits are those of a word.
func lettersAndDigits(word uint64) uint64 {
	return within(word|ones*0x20, 'a', 'z') | within(word, '0', '9')
}

// appendOperation appends the name of an operation as the statistics show it: it begins with
// a letter and has only letters, digits, '_' and '.'.
func appendOperation(dst []byte, name, _ string) []byte {
	dst, name = trimmed(dst, name, MaxOperation)
	for name != "" && classes[name[0]]&letter == 0 {
		name = name[1:]
	}
	switch {
	case name == "":
		return append(dst, unnamedOperation...)
	case hasOperationBytes(name):
		dst = append(dst, name...)
	default:
		dst = rewriteOperation(dst, name)
	}
	if dst[len(dst)-1] == '_' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// rewriteOperation makes one '_' of each run of other characters, none before or behind a '.'.
// The result is no longer than the name, which may lie where the result is appended.
func rewriteOperation(dst []byte, name string) []byte {
	last := byte('.') // of what was appended
	for i := range len(name) {
		c := name[i]
		switch class := classes[c]; {
		case class&ofOperation != 0 || c == '.' && last != '_':
			dst, last = append(dst, c), c
		case c == '.':
			dst[len(dst)-1], last = '.', '.'
		case last != '.' && last != '_':
			dst, last = append(dst, '_'), '_'
		}
	}
	return dst
}

// ServiceName is the name of a service as the statistics show it. lang names the service
// of a tracer that gives it no name.
func ServiceName(name, lang string) string {
	if IsServiceName(name) {
		return name
	}
	return stringOf(appendService(nil, name, lang))
}

// appendService appends the name of a service as the statistics show it: in lower case, of
// letters, digits and ':', '.', '/', '-', with one '_' for each run of anything else, and
// none at its end. lang names the service of a tracer that gives it no name.
//
// A processor can't predict where runs begin, so a byte of ASCII takes no branch. The result
// is no longer than the name, which may lie where the result is appended.
func appendService(dst []byte, name, lang string) []byte {
	dst, name = trimmed(dst, name, MaxService)
	dst = slices.Grow(dst, len(name))
	to := dst[len(dst) : len(dst)+len(name)]
	end, before := 0, 1 // before is 0 within a run, where bytes are written over each other
	for at := 0; at < len(name); {
		r, size := rune(0), 1
		if isContinued(name, at) {
			r, size = utf8.DecodeRuneInString(name[at:])
			if r = inService(r); r != 0 {
				end, before = end+utf8.EncodeRune(to[end:end+size], r), 1
				at += size
				continue
			}
		}
		stays := 0
		if to[end] = serviceBytes[name[at]]; to[end] != '_' {
			stays = 1
		}
		end += stays | before
		before = stays
		at += size
	}
	if before == 0 {
		end--
	}
	if end == 0 {
		return appendUnnamed(dst, lang)
	}
	return dst[:len(dst)+end]
}

// trimmed is a name as Text makes it, but for bytes that are not UTF-8 where these don't
// decide what is cut: no name has them. Where it is not the name itself, it lies behind dst,
// where a rewritten name may be written that is no longer at any byte.
func trimmed(dst []byte, name string, limit int) ([]byte, string) {
	if len(name)+(replacementBytes-1)*beyondASCII(name) <= limit || isText(name, limit) {
		return dst, name
	}
	begin := len(dst)
	dst = appendText(dst, name, limit)
	return dst[:begin], stringOf(dst[begin:])
}

// IsServiceName reports whether a name can stay as it is. A name that is not ASCII is
// looked at by ServiceName, which may leave it as well.
func IsServiceName(name string) bool {
	if len(name) < wordBytes || len(name) > MaxService {
		return name != "" && len(name) <= MaxService && hasServiceBytes(name)
	}
	last := len(name) - wordBytes
	for at := 0; at < last; at += wordBytes {
		if !isOfService(wordAt(name, at)) {
			return false
		}
	}
	return isOfService(wordAt(name, last))
}

func hasServiceBytes(name string) bool {
	for i := range len(name) {
		if classes[name[i]]&ofService == 0 {
			return false
		}
	}
	return true
}

// isOfService says whether eight bytes can stay.
func isOfService(word uint64) bool {
	return (within(word, '-', ':')|within(word, 'a', 'z'))&^word == highs
}

// PeerName is the name of another service as the agent writes it in a tag: like
// that of a service, but nothing where nothing is left of it.
func PeerName(name string) string {
	name = Text(name, MaxService)
	if strings.IndexFunc(name, isTagRune) < 0 {
		return ""
	}
	return ServiceName(name, "")
}

// inService is what a character becomes in the name of a service, 0 where it can't stay. A
// character takes two searches in the tables of Unicode, and a flood of names in another
// script hundreds a span. So the answers for 256 neighbouring characters are made together,
// when the first of them is met: 512 bytes, but where all stay as they are or none stays. All
// planes with letters in them take 60 KiB.
func inService(r rune) rune {
	if r > lastLetter {
		return searchInService(r)
	}
	known := knownInService[r>>8].Load()
	if known == nil {
		known = answersFrom(r &^ 0xff)
		knownInService[r>>8].Store(known) // the same, whoever stores it
	}
	step := known[r&0xff]
	if step == goes {
		return 0
	}
	return r&^0xffff | rune(uint16(r)+step)
}

// answers are what is added to each of 256 characters, within its plane, or goes.
type answers [256]uint16

const (
	goes       = 1 << 15 // the character, since it can't stay
	lastLetter = 0x3ffff // and more: the end of its plane
)

var (
	knownInService [(lastLetter + 1) >> 8]atomic.Pointer[answers]
	allStay        answers
	noneStays      = func() (of answers) {
		for i := range of {
			of[i] = goes
		}
		return of
	}()
)

// answersFrom are those from a character on.
func answersFrom(first rune) *answers {
	made := new(answers)
	for i := range made {
		made[i] = goes
		if r := first | rune(i); searchInService(r) != 0 {
			made[i] = uint16(searchInService(r) - r)
		}
	}
	switch *made {
	case allStay:
		return &allStay
	case noneStays:
		return &noneStays
	}
	return made
}

// searchInService is inService as the agent says it.
func searchInService(r rune) rune {
	if r = lower(r); isTagRune(r) {
		return r
	}
	return 0
}

// isTagRune says whether a rune stays, and is no run's '_'.
func isTagRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(":./-", r)
}

// lower is the lower case of a rune where that is as long, as the agent does it.
func lower(r rune) rune {
	if low := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(low) == utf8.RuneLen(r) {
		return low
	}
	return r
}

// Most of making a key normal is finding that its texts can stay. So a text is looked at
// eight bytes at a time, as one number: what is found of a byte stands in its highest bit.
// The last eight bytes of a text overlap those before them.
const (
	wordBytes = 8
	ones      = 0x0101010101010101
	highs     = 0x80 * ones
)

// wordAt are eight bytes of a text, the first in the lowest bits.
func wordAt(text string, at int) uint64 {
	return binary.LittleEndian.Uint64([]byte(text[at : at+wordBytes]))
}

// within says of each byte of a word whether it lies between two of ASCII. It holds where
// all eight are ASCII.
func within(word uint64, from, to byte) uint64 {
	return (word + ones*uint64(0x80-from)) &^ (word + ones*uint64(0x7f-to)) & highs
}

// beyondASCII is how many bytes of a text are not ASCII.
func beyondASCII(text string) (count int) {
	for ; len(text) >= wordBytes; text = text[wordBytes:] {
		count += bits.OnesCount64(wordAt(text, 0) & highs)
	}
	for i := range len(text) {
		count += int(text[i] >> 7)
	}
	return count
}
