package datadog

import (
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// Requests with traces of which the agent takes each at once, and answers it in one piece, are
// answered on their connection: see package http1. What is not like that is net/http's: from
// its head on, or, where the agent takes its time, as a request that was begun.

// Takes says which are answered there.
func (s *Server) Takes(method, path string, _ *http1.Fields) bool {
	_, ok := formats[path]
	return ok && method != http.MethodGet
}

// Answer answers one, or has net/http go on with it.
func (s *Server) Answer(c *http1.Conn, r *http1.Request) (isOver bool) {
	j := s.newJob(formats[r.Path], c, r.Method+" "+r.Path, r.Fields)
	j.body, j.broken = r.Body, r.Broken
	defer func() {
		if !isOver {
			c.HandOver(j)
		}
	}()
	return j.broken == nil && j.forwardAtOnce()
}
