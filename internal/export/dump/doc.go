// Package dump writes payloads that the agent refused to files, so that an operator can find out why.
//
// It owns a file format and a directory. A file contains the daemon's request and the agent's response, both
// as HTTP/1.1, so that any tool for HTTP can read them, and the request can be sent again. Headers of the
// request that begin with Spanstatsd- were not sent. They contain the time, the agent and the number of spans.
//
// Concurrency: a Dir is used by one delivery at a time, and writes in the goroutine of that delivery.
//
// Limits: one file per Pause, and MaxFiles files per process, with one payload each. The package removes no
// files. Files are readable by their owner only, because they contain names of services, resources and tags.
package dump
