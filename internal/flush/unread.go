package flush

import "time"

// tailTime is how long after its handler the end of an answer may be written.
const tailTime = time.Second

// Unread is the cycles that an exporter has published, and that no reader is known to have
// had whole. What is published is a copy of running totals too, but one that is fetched. The
// zero value is ready to use, by any goroutine.
type Unread struct{ copies copies }

// add adds a cycle that is about to be published. Who waits for it is answered, and if nobody
// reads it, it is settled after the retry age.
func (u *Unread) add(c *cycle, retryAge time.Duration) {
	c.delivery.add()
	c.delivery.answer(nil)
	number := c.Cycle
	u.copies.mu.Lock()
	defer u.copies.mu.Unlock()
	u.copies.open = append(u.copies.open, openCycle{delivery: c.delivery, copy: number, isAnswered: true})
	time.AfterFunc(retryAge, func() { u.copies.arrive(number) })
}

// Begin notes that a reader is about to be sent what was published of a cycle. What it returns
// is called once, with whether all of that was written but the end of the answer.
func (u *Unread) Begin(number uint64) (end func(isWhole bool)) {
	read := u.copies.saidBy(number)
	read.leave()
	return func(isWhole bool) {
		read.returned(isWhole)
		if isWhole {
			time.AfterFunc(tailTime, func() { u.copies.arrive(number) })
		}
	}
}
