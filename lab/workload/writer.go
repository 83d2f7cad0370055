package workload

import (
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// writer writes the labels of a flood's keys. Those of a batch are parts of one string, so
// that they cost one allocation together. How long a random part is, is drawn each time.
type writer struct {
	rnd    *rand.Rand
	serial uint64 // of the shape that counts on
	of     *span.Key
	buffer []byte
	labels []written
	tags   []string
}

// serialBits of a serial count on; those above them are the seed's.
const serialBits = 32

// written is where a label of a key begins in the buffer. It ends where the next one begins.
type written struct {
	key   *span.Key
	label span.Label
	at    int
}

// begin begins a batch.
func (w *writer) begin() { w.buffer, w.labels = w.buffer[:0], w.labels[:0] }

// key begins a key.
func (w *writer) key(k *span.Key) { w.of = k }

// label begins a text, or one more tag of a list. The tags of a list must come one behind
// the other. It returns the writer, for the first part of the label to follow.
func (w *writer) label(l span.Label) *writer {
	w.labels = append(w.labels, written{w.of, l, len(w.buffer)})
	return w
}

// end gives the keys their labels.
func (w *writer) end() {
	text, end := string(w.buffer), len(w.buffer)
	w.tags = append(w.tags[:0], make([]string, len(w.labels))...)
	for i := len(w.labels) - 1; i >= 0; i-- { // from the end, so that a list grows towards its begin
		l := w.labels[i]
		if value := text[l.at:end]; l.label < span.FirstList {
			*l.key.Text(l.label) = value
		} else {
			list := l.key.Tags(l.label)
			w.tags[i] = value
			*list = w.tags[i : i+1+len(*list) : i+1+len(*list)]
		}
		end = l.at
	}
}

// text appends what is the same each time.
func (w *writer) text(s string) *writer {
	w.buffer = append(w.buffer, s...)
	return w
}

// one appends one of several texts.
func (w *writer) one(of ...string) *writer { return w.text(of[w.rnd.IntN(len(of))]) }

// These append so many characters, from the least to the most that is given.
const (
	digits   = "0123456789"
	hexes    = "0123456789abcdef"
	lower    = "abcdefghijklmnopqrstuvwxyz"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	spoken   = "abcdefghijkl mnopqrst uvwxyz"
	broken   = "abcdefgh\xe4\xf6\xfc\xdf\xe9\xe8 "
)

func (w *writer) random(alphabet string, least, most int) *writer {
	random := uint64(0)
	for i := range w.between(least, most) {
		if i%8 == 0 {
			random = w.rnd.Uint64()
		}
		w.buffer = append(w.buffer, alphabet[random&0xff*uint64(len(alphabet))>>8])
		random >>= 8
	}
	return w
}

// foreign are letters of two, three and four bytes, some of which have a lower case.
var foreign = []rune("äöüßéèÄÖÜÉжшящФЩЭあいう日本語支付注文東京𠮷𠂉🍣🛒")

// unicode appends such letters.
func (w *writer) unicode(least, most int) *writer {
	for range w.between(least, most) {
		w.buffer = append(w.buffer, string(foreign[w.rnd.IntN(len(foreign))])...)
	}
	return w
}

// count appends a serial number of twelve digits.
func (w *writer) count() *writer {
	for shift := 44; shift >= 0; shift -= 4 {
		w.buffer = append(w.buffer, hexes[w.serial>>shift&0xf])
	}
	w.serial++
	return w
}

func (w *writer) between(least, most int) int { return least + w.rnd.IntN(most-least+1) }
