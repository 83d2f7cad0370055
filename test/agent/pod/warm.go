package main

import "time"

// piece is the length of a piece of the warm-up. On a busy machine it can take up to patience, but
// every side gets the same number of requests, so all begin their bills equally warm.
const (
	piece    = 3 * time.Second
	patience = 30 * time.Second
)

// warm gives the load to all sides simultaneously, until the JIT compilers are idle on all of them or
// the requests of the maximum warm-up have been sent.
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

// work is the processor time of an application, and the part of its JIT compilers.
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

// rest reports whether every application's compilers used less than a tenth of its processor time. The
// limit is a share, because on a busy machine compilers get little time even if they have much to do.
func rest(before, after []work) bool {
	for i := range before {
		if 10*(after[i].compiling-before[i].compiling) >= after[i].all-before[i].all {
			return false
		}
	}
	return true
}
