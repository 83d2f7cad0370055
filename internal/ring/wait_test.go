package ring

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// start runs a consumer in the background. The returned function stops it and waits for its end.
func start[T any](t *testing.T, r *Ring[T], limit int, onSlots func([]T), onSignal func(Signal)) func() {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Consume(limit, onSlots, onSignal)
	}()
	return func() {
		if !r.Send(Signal{Kind: Stop}) {
			t.Error("no room for a stop")
		}
		<-done
	}
}

func noSignal(Signal) {}

// publish publishes a run of n slots in a ring that has room for it.
func publish[T any](t *testing.T, r *Ring[T], n int) {
	t.Helper()
	c, result := r.Claim(n)
	if result != Claimed {
		t.Fatalf("a claim of %d is %d", n, result)
	}
	c.Publish()
}

// TestWake_NoneIsLost publishes at every point of a consumer's way to sleep, and waits for the answer.
// In the bubble, time passes only while all goroutines are blocked. So time passes if and only if a
// wake was lost and a nap ended instead. A wake lost by a park blocks all goroutines forever.
func TestWake_NoneIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New[uint64](backlogPart) // so that one slot is a large backlog
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan int, 1)
		stop := start(t, r, 8, func(slots []uint64) { answers <- len(slots) }, noSignal)
		began := time.Now()
		dice := rand.New(rand.NewPCG(1, 2))
		for range 30_000 {
			waste(dice.IntN(4000))
			publish(t, r, 1)
			await(answers)
		}
		stop()
		if lost := time.Since(began); lost != 0 {
			t.Errorf("only the end of a nap found some work; %s passed", lost)
		}
		if stats := r.Stats(); stats.Sleeps != stats.Wakes || stats.Sleeps == 0 {
			t.Errorf("%d sleeps, %d wakes; want as many, and some", stats.Sleeps, stats.Wakes)
		}
	})
}

// waste delays the next step of a producer without yielding its processor: producer and consumer
// must run in parallel to collide.
func waste(steps int) {
	x := uint64(steps)
	for range steps {
		x = x*6364136223846793005 + 1
	}
	runtime.KeepAlive(x)
}

// await waits for an answer without yielding the processor.
func await(answers <-chan int) {
	for range 2000 {
		select {
		case <-answers:
			return
		default:
		}
	}
	<-answers
}

// TestConsumer_IdleParks counts the sleeps of an idle consumer: one nap after work, then one
// park.
func TestConsumer_IdleParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New[uint64](8)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, r, 8, func([]uint64) {}, noSignal)
		slept := func(want uint64, when string) {
			t.Helper()
			synctest.Wait()
			if got := r.Stats().Sleeps; got != want {
				t.Errorf("%s: %d sleeps, want %d", when, got, want)
			}
		}
		slept(1, "at first")
		time.Sleep(time.Hour)
		slept(1, "an hour later")
		publish(t, r, 1)
		slept(2, "after work")
		time.Sleep(napTime)
		slept(3, "after work and a nap")
		time.Sleep(time.Hour)
		slept(3, "an hour after that")
		if wakes := r.Stats().Wakes; wakes != 1 {
			t.Errorf("%d wakes, want the one of the publish", wakes)
		}
		stop()
	})
}

// TestNap_EndsForBacklog expects that a few slots do not end a nap, but a quarter of the ring or a
// signal does.
func TestNap_EndsForBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 64 * backlogPart
		r, err := New[uint64](size)
		if err != nil {
			t.Fatal(err)
		}
		var received atomic.Int64
		stop := start(t, r, size, func(slots []uint64) { received.Add(int64(len(slots))) }, noSignal)
		expect := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if got := int(received.Load()); got != want {
				t.Errorf("%s: %d slots received, want %d", when, got, want)
			}
		}
		synctest.Wait()
		publish(t, r, 1)
		expect(1, "a slot for a consumer that is parked")
		publish(t, r, 63)
		expect(1, "less than a backlog for one that naps")
		publish(t, r, 1)
		expect(65, "a backlog")
		publish(t, r, 1)
		time.Sleep(napTime - 1)
		expect(65, "just before the nap is over")
		time.Sleep(time.Nanosecond)
		expect(66, "when it is over")
		time.Sleep(napTime)
		publish(t, r, 1)
		expect(67, "a slot for one that parks after a nap without work")
		publish(t, r, 1)
		r.Send(Signal{Kind: Report})
		expect(68, "a signal")
		publish(t, r, 1)
		stop()
		expect(69, "a stop")
	})
}

// A consumer that gets one slot every tenth of a second soon naps rarely. After work has arrived
// during a nap, it naps again each time.
func TestNap_SkippedWithoutWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New[uint64](64 * backlogPart)
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, r, 8, func([]uint64) {}, noSignal)
		synctest.Wait()
		naps := func(slots int) (n int) {
			for range slots {
				publish(t, r, 1)
				synctest.Wait()
				if r.sequence.parking.sleepState.Load() == napping {
					n++
				}
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
			}
			return n
		}
		if n := naps(1 + 1 + 1 + 3 + 1 + 7 + 1 + 15); n != 4 {
			t.Errorf("%d naps after the first slots, want 4, rarer each time", n)
		}
		if n := naps(10 * (1 + maxSkippedNaps)); n != 10 {
			t.Errorf("%d naps after many more, want 10", n)
		}
		for range 100 { // so that work arrives during each nap
			publish(t, r, 1)
			time.Sleep(napTime / 2)
		}
		time.Sleep(100 * time.Millisecond)
		if n := naps(2); n != 1 {
			t.Errorf("%d naps after steady work, want one after a skipped one", n)
		}
		stop()
	})
}

// TestNap_WakesForFullRing fills a ring from several producers while its consumer begins and
// ends naps. In the bubble, time passes only while all goroutines are blocked, and a producer
// without room blocks until the consumer has freed slots. So time passes only if the consumer of a
// full ring was not woken.
func TestNap_WakesForFullRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 4 * backlogPart
		r, err := New[uint64](size)
		if err != nil {
			t.Fatal(err)
		}
		// Half of the ring: slots are freed a moment after they were consumed.
		room := make(chan struct{}, size/2)
		for range size / 2 {
			room <- struct{}{}
		}
		stop := start(t, r, size, func(slots []uint64) {
			for range slots {
				room <- struct{}{}
			}
		}, noSignal)
		began := time.Now()
		var producers sync.WaitGroup
		for seed := range uint64(3) {
			producers.Go(func() {
				dice := rand.New(rand.NewPCG(seed, 2))
				for range 20_000 {
					<-room
					waste(dice.IntN(500))
					publish(t, r, 1)
				}
			})
		}
		producers.Wait()
		if slept := time.Since(began); slept != 0 {
			t.Errorf("a full ring waited for its consumer's alarm; %s passed", slept)
		}
		stop()
	})
}

// TestCancelSleep_TakesToken expects no token of a wake that coincides with a cancelSleep, because it
// would end a later park.
func TestCancelSleep_TakesToken(t *testing.T) {
	r, err := New[uint64](8)
	if err != nil {
		t.Fatal(err)
	}
	r.sleepState.Store(parked)
	r.wake()
	r.cancelSleep()
	if left, flag := len(r.wakeToken), r.sleepState.Load(); left != 0 || flag != 0 {
		t.Errorf("%d tokens and flag %d are left, want none", left, flag)
	}
}

// TestConsumer_ChecksAgainBeforeSleep expects that a consumer finds slots published between its
// last read and its announcement, without a sleep.
func TestConsumer_ChecksAgainBeforeSleep(t *testing.T) {
	r, err := New[int](8)
	if err != nil {
		t.Fatal(err)
	}
	at := r.head.Load()
	claim, _ := r.Claim(1)
	claim.Publish()
	r.await(at, newIdlePolicy())
	if sleeps := r.sleeps.Load(); sleeps != 0 {
		t.Errorf("it slept %d times before a run that was there", sleeps)
	}
}
