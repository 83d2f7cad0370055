package main

import "time"

// piece is how long a warm-up lasts at a time. On a busy machine it may take as long as patience
// is, but has as many requests for every side: none begins its bill less warm than another.
const (
	piece    = 3 * time.Second
	patience = 30 * time.Second
)

// warm gives all sides their load at once, until the compilers of all rest or they have had as
// many requests as are due in the most that is given.
func warm(all []*side, most time.Duration) error {
	for warmed := time.Duration(0); ; {
		before, err := workOf(all)
		if err != nil {
			return err
		}
		_ = together(all, func(s *side) error {
			s.load.run(s.cell.path, s.cell.app.rate, min(piece, most), patience)
			return nil
		})
		after, err := workOf(all)
		if err != nil {
			return err
		}
		warmed += piece
		if warmed >= most || warmed >= all[0].cell.app.warm && rest(before, after) {
			return nil
		}
	}
}

// work is the processor's time that an application has taken, and its compilers of that.
type work struct{ all, compiling time.Duration }

func workOf(sides []*side) (of []work, err error) {
	for _, s := range sides {
		all, err := s.pod.app.cpu()
		if err != nil {
			return nil, err
		}
		compiling, err := s.pod.app.compiling()
		if err != nil {
			return nil, err
		}
		of = append(of, work{all, compiling})
	}
	return of, nil
}

// rest says whether every application's compilers took less than a tenth of what it took. It is a
// share, because on a busy machine they get little time however much they have to do.
func rest(before, after []work) bool {
	for i := range before {
		if 10*(after[i].compiling-before[i].compiling) >= after[i].all-before[i].all {
			return false
		}
	}
	return true
}
