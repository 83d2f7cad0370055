package bench

import (
	"context"
	"fmt"
	"os"
	"time"
)

// profile writes where the daemon's CPU time goes while the load runs, and gives
// what became of that on the channel, once.
func (r *run) profile(ctx context.Context) <-chan error {
	written := make(chan error, 1)
	if r.config.Profile == "" {
		written <- nil
		return written
	}
	seconds := int((r.config.For - leastProfiled/2).Seconds()) // within the load
	path := fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds)
	go func() {
		profile, err := ask(ctx, time.Duration(seconds)*time.Second+limit, r.target.http, path)
		if err == nil {
			err = os.WriteFile(r.config.Profile, profile, 0o644)
		}
		written <- err
	}()
	return written
}
