package main

import "time"

// order is the sides' in a round: who is first changes every two rounds, and the second of the
// two goes backwards, so that none always follows the same one, and each has every place
// equally often in twice as many rounds as there are sides.
func order(round, sides int) (all []int) {
	for place := range sides {
		if round%2 == 1 {
			place = sides - 1 - place
		}
		all = append(all, (place+round/2)%sides)
	}
	return all
}

// run gives the load to one side after the other for a slice each, round by round, and writes down
// what every pod took meanwhile.
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

// slice gives it the load.
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

// reading is what the clocks of a pod's processes show.
type reading struct {
	at  time.Time
	cpu parts // µs since each began
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

func (r reading) since(before reading, own bool) spent {
	return spent{own, r.at.Sub(before.at).Seconds(), r.cpu.plus(-1, before.cpu)}
}
