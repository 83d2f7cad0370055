// Package slo implements service level objectives: which spans an objective counts, and which of these are good.
//
// An objective selects spans by labels of their key and origin. It is matched once per key (package admit), so a span of
// a known key costs a comparison of its duration. A span is good if it has no error and takes at most the threshold, in
// nanoseconds as sent. The counts belong to a cycle, like those of spans, so they are delivered and recovered together.
//
// Concurrency: a List does not change after Parse or ReadFile has returned it. Counts are not safe for concurrent use.
//
// Limits: MaxObjectives objectives, and MaxFileBytes bytes of a file.
package slo
