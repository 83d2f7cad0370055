package aggregate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// TestBucketsOfTracers: a bucket of ours is there for a minute, any other while it is
// fresh, and none before it begins.
func TestBucketsOfTracers(t *testing.T) {
	m := mergingCycle(1).merged // opened at 1003
	const none = -1
	for _, test := range []struct{ start, now, want float64 }{
		{930, 1004, none},
		{940, 1004, 940},
		{1000, 1004, 1000},
		{1010, 1011, 1010}, // the cycle is not sealed yet
		{1010, 1009, none},
		{-1000, 1004, none},
		{0, 1004, none},
		{1003.5, 1004, 1002},
		{1004, 1004, 1004},
		{1004.5, 1004, none},
		{1001, 1006, 1000},
		{1000.9, 1006, none},
		{985, 1004, none},
	} {
		got, ok := m.bucketOf(int64(test.start*1e9), int64(test.now*1e9))
		if !ok {
			got = none * 1e9
		}
		if got != int64(test.want*1e9) {
			t.Errorf("%v at %v: %v", test.start, test.now, got)
		}
	}
	merging := mergingCycle(1).Merging()
	defer merging.End()
	if merging.Reserve([]Group{{Bucket: 1000e9, Mapping: sketch.OwnMapping}}, 5e9,
		time.Unix(1004, 0)) == nil {
		t.Error("a bucket of another width is taken")
	}
}

// agentsTime is the agent's rule (getAggregationBucketTime): where it puts a bucket
// that began at start and comes at now, after it has last flushed at flushed.
func agentsTime(start, now, flushed time.Time) time.Time {
	align := func(t time.Time) time.Time { return t.Truncate(2 * time.Second).Add(time.Second) }
	oldest := align(flushed.Add(2*time.Second - 20*time.Second))
	switch {
	case start.Before(oldest):
		return oldest
	case start.After(now):
		return align(now)
	}
	return align(start)
}

// TestTheAgentKeepsThem: where a bucket that is merged began at no boundary, the agent
// puts it where it would have put it, although it is told another start, and a flush
// interval later.
func TestTheAgentKeepsThem(t *testing.T) {
	m := mergingCycle(1).merged
	rnd := rand.New(rand.NewPCG(3, 4))
	merged := 0
	for range 200_000 {
		now := time.Unix(1003, rnd.Int64N(7e9))
		start := now.Add(time.Duration(rnd.Int64N(9e9) - 8e9))
		bucket, ok := m.bucketOf(start.UnixNano(), now.UnixNano())
		if !ok || start.UnixNano()%m.width == 0 {
			continue
		}
		merged++
		sent := now.Add(time.Duration(rnd.Int64N(11e9)))
		// It has flushed a little while ago, or not for two seconds.
		direct := agentsTime(start, now, now.Add(-time.Duration(rnd.Int64N(2e9))))
		through := agentsTime(time.Unix(0, bucket), sent, sent.Add(-time.Duration(rnd.Int64N(2e9))))
		if !direct.Equal(through) {
			t.Fatalf("begun %v, sent %v: the agent has it at %v; begun %v and sent %v, at %v", start, now,
				direct, time.Unix(0, bucket), sent, through)
		}
	}
	if merged < 50_000 {
		t.Errorf("only %d buckets were merged", merged)
	}
}
