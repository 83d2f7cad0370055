package bench

import (
	"context"
	"fmt"
	"os"
	"time"
)

// profile writes a CPU profile of the daemon under load, and sends one error or nil on the
// returned channel.
func (r *run) profile(ctx context.Context) <-chan error {
	written := make(chan error, 1)
	if r.config.Profile == "" {
		written <- nil
		return written
	}
	seconds := int((r.config.For - leastProfiled/2).Seconds()) // shorter than the load
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
