package health

import (
	"fmt"
	"net/http"
	"time"
)

// missedSeals is how many flush intervals may pass without a seal before the
// daemon calls itself stuck.
const missedSeals = 6

// Alive is an error when a restart would help: when cycles are not sealed any
// more. That the agent is away is no such reason.
func (s *Server) Alive() error {
	last := s.config.Sources.Aggregate.Stats().LastSeal
	if stuck := time.Since(last); stuck > missedSeals*s.config.FlushInterval {
		return fmt.Errorf("no cycle was sealed for %s", stuck.Round(time.Second))
	}
	return nil
}

func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	if err := s.Alive(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz is true between the moment that tracers may connect and the moment
// that the daemon begins to stop.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := s.notReady(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// notReady is why tracers may not be sent here, "" where they may.
func (s *Server) notReady() string {
	switch {
	case s.ready.Load():
		return ""
	case s.opened.Load():
		return "stopping: tracers are not accepted any more"
	}
	return "starting: tracers are not accepted yet"
}
