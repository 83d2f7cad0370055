package workload

import (
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// writer builds the labels of a flood's keys. The labels of a batch are substrings of one
// string, so that they need one allocation together. Random parts of labels have random
// lengths.
type writer struct {
	rnd     *rand.Rand
	serial  uint64 // serial number that makes labels unique
	current *span.Key
	buffer  []byte
	labels  []written
	tags    []string
}

// serialBits is the number of low bits of a serial number that are incremented. The bits above
// are the seed.
const serialBits = 32

// written is where a label of a key begins in the buffer. It ends where the next one begins.
type written struct {
	key   *span.Key
	label span.Label
	at    int
}

// begin starts a batch.
func (w *writer) begin() { w.buffer, w.labels = w.buffer[:0], w.labels[:0] }

// key starts a key.
func (w *writer) key(k *span.Key) { w.current = k }

// label starts a text, or one more tag of a list. The tags of a list must be added
// consecutively. It returns the writer, to append the first part of the label.
func (w *writer) label(l span.Label) *writer {
	w.labels = append(w.labels, written{w.current, l, len(w.buffer)})
	return w
}

// end assigns the labels to their keys.
func (w *writer) end() {
	text, end := string(w.buffer), len(w.buffer)
	w.tags = append(w.tags[:0], make([]string, len(w.labels))...)
	// Backwards, so that the substring of a label ends where the following label begins.
	for i := len(w.labels) - 1; i >= 0; i-- {
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

// text appends a fixed text.
func (w *writer) text(s string) *writer {
	w.buffer = append(w.buffer, s...)
	return w
}

// one appends one of several texts.
func (w *writer) one(texts ...string) *writer { return w.text(texts[w.rnd.IntN(len(texts))]) }

// The following append a random number of characters between least and most.
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

// foreign are letters of two, three and four bytes. Some of them have a lower case.
var foreign = []rune("äöüßéèÄÖÜÉжшящФЩЭあいう日本語支付注文東京𠮷𠂉🍣🛒")

// unicode appends letters of foreign.
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
