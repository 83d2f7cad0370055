package structure

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
)

// referencesUpwards counts, of each room, the references between its files that point up.
//
// A file refers to another one of its package if it names anything that is declared there:
// a type, a function, a method, a field, a variable or a constant. However often it does,
// that is one reference. In the order of the files in which the fewest point up, one in
// twenty may.
func referencesUpwards(files []*file) (all []figure) {
	byRoom := map[string][]*file{}
	for _, f := range files {
		byRoom[f.room()] = append(byRoom[f.room()], f)
	}
	for room, files := range byRoom {
		refers, references := references(files)
		all = append(all, figure{room, upwards(refers), references / 20})
	}
	return all
}

// references says which file of a package refers to which, by their places, and to how many.
func references(files []*file) (refers [][]int, total int) {
	slices.SortFunc(files, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
	place := map[*token.File]int{}
	var syntax []*ast.File
	for i, f := range files {
		place[f.tokens] = i
		syntax = append(syntax, f.syntax)
		refers = append(refers, make([]int, len(files)))
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: emptyPackages{}, Error: func(error) {}, FakeImportC: true}
	set := files[0].set
	ours, _ := check.Check(files[0].room(), set, syntax, &info)
	for name, object := range info.Uses {
		if object.Pkg() != ours || !object.Pos().IsValid() {
			continue
		}
		from, to := place[set.File(name.Pos())], place[set.File(object.Pos())]
		if from != to && refers[from][to] == 0 {
			refers[from][to] = 1
			total++
		}
	}
	return refers, total
}

// emptyPackages has each import be a package with nothing in it. What a room's own
// declarations are is known without; what is of another package is no matter here.
type emptyPackages struct{}

func (emptyPackages) Import(of string) (*types.Package, error) {
	p := types.NewPackage(of, path.Base(of))
	p.MarkComplete()
	return p, nil
}

// upwards is how many references point up in the best order that is found: from fifty
// orders at random, the same ones each time, files are moved one by one to where fewer
// point up, until none can be.
func upwards(refers [][]int) int {
	best := len(refers) * len(refers)
	for start := range uint64(50) {
		order := rand.New(rand.NewPCG(start, 0)).Perm(len(refers))
		for moveOne(order, refers) {
		}
		up := 0
		for i, low := range order {
			for _, high := range order[:i] {
				up += refers[low][high]
			}
		}
		best = min(best, up)
	}
	return best
}

// moveOne moves one file to where fewer references point up, if there is such a place.
func moveOne(order []int, refers [][]int) bool {
	for from, moved := range order {
		to, fewest := from, 0
		more := 0 // references that point up, if it is moved so far
		for at := from + 1; at < len(order); at++ {
			if more += refers[moved][order[at]] - refers[order[at]][moved]; more < fewest {
				to, fewest = at, more
			}
		}
		more = 0
		for at := from - 1; at >= 0; at-- {
			if more += refers[order[at]][moved] - refers[moved][order[at]]; more < fewest {
				to, fewest = at, more
			}
		}
		if to != from {
			copy(order, slices.Insert(slices.Delete(slices.Clone(order), from, from+1), to, moved))
			return true
		}
	}
	return false
}

// TestTheBestOrderIsFound holds the search to every order of small packages.
func TestTheBestOrderIsFound(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		refers := make([][]int, 6)
		for i := range refers {
			refers[i] = make([]int, len(refers))
			for j := range refers {
				if i != j && random.IntN(3) == 0 {
					refers[i][j] = 1
				}
			}
		}
		if got, want := upwards(refers), fewestUpwards(refers, nil); got != want {
			t.Errorf("%v: %d references point up in the order that was found, %d in the best", refers, got,
				want)
		}
	}
}

// fewestUpwards tries every order that begins so.
func fewestUpwards(refers [][]int, begins []int) int {
	if len(begins) == len(refers) {
		return 0
	}
	fewest := len(refers) * len(refers)
	for low := range refers {
		if slices.Contains(begins, low) {
			continue
		}
		up := 0
		for _, high := range begins {
			up += refers[low][high]
		}
		fewest = min(fewest, up+fewestUpwards(refers, append(slices.Clone(begins), low)))
	}
	return fewest
}
