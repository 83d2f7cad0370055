package main

import "time"

// order returns the order of the sides in a round. The first side changes every two rounds, and the
// second of these rounds is reversed, so that no side always follows the same one. In twice as many
// rounds as there are sides, each side has each position equally often.
func order(round, sides int) (all []int) {
	for place := range sides {
		if round%2 == 1 {
			place = sides - 1 - place
		}
		all = append(all, (place+round/2)%sides)
	}
	return all
}

// run gives the load to one side after another, a slice each, in rounds, and records the usage of every
// pod in each slice.
func run(all []*side, rounds int, slice time.Duration) error {
	before, err := readAll(all)
	if err != nil {
		return err
	}
	for round := range rounds {
		for _, next := range order(round, len(all)) {
			if err := all[next].slice(slice); err != nil {
				return err
			}
			after, err := readAll(all)
			if err != nil {
				return err
			}
			for i, s := range all {
				s.slices = append(s.slices, after[i].since(before[i], i == next))
			}
			before = after
		}
	}
	return nil
}

// slice gives the load to this side for a slice.
func (s *side) slice(lasts time.Duration) error {
	before, err := s.pod.collections.length()
	if err != nil {
		return err
	}
	s.billed.add(s.send(s.cell.path, lasts))
	after, err := s.pod.collections.length()
	if err != nil {
		return err
	}
	pauses, ms, err := s.pod.collections.between(before, after)
	s.pauses, s.pauseMs = s.pauses+pauses, s.pauseMs+ms
	return err
}

// reading holds the clocks of a pod's processes.
type reading struct {
	at  time.Time
	cpu parts // in µs since each process began
}

func readAll(all []*side) (readings []reading, err error) {
	for _, s := range all {
		cpu, err := s.pod.each(billed)
		if err != nil {
			return nil, err
		}
		readings = append(readings, reading{time.Now(), cpu})
	}
	return readings, nil
}

func (r reading) since(before reading, own bool) usage {
	return usage{own, r.at.Sub(before.at).Seconds(), r.cpu.plus(-1, before.cpu)}
}
