package structure

import (
	"strings"
	"testing"
)

// shortestEssay is how many words say what a package owns, its threading rule and
// its bounds, where there is little to say.
const shortestEssay = 60

func TestEveryPackageOpensWithAnEssay(t *testing.T) {
	words := map[string]int{}
	for _, f := range readAll(t) {
		words[f.room()] += len(strings.Fields(f.syntax.Doc.Text()))
	}
	for room, n := range words {
		if n < shortestEssay {
			t.Errorf("%s: its package comment has %d words, at least %d: what does it own, who may call "+
				"it, what bounds it?", room, n, shortestEssay)
		}
	}
}
