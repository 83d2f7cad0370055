package main

import (
	"context"
	"errors"
	"time"
)

// shape is one kind of hostile behavior.
type shape struct {
	name        string
	concurrency int           // number of simultaneous attempts
	interval    time.Duration // pause of each of them between attempts
	attempt     func(context.Context, *target) error
}

// errInvalidResponse reports a response that a daemon must not send.
var errInvalidResponse = errors.New("invalid response")

// knownDefects lists shapes that the short soak skips, each with the defect that it shows. Fixing a
// defect includes removing its entry.
var knownDefects = map[string]string{}

// shapeGroups lists all shapes. Each group has a process: one for connections (connections.go), one for
// bodies (bodies.go), and one for names and native messages (names.go).
var shapeGroups = [][]shape{
	{
		{"idle connections", 150, 0, stayIdle},
		{"connections that are closed immediately", 2, 3 * time.Millisecond, connectAndClose},
		{"incomplete header", 6, 0, sendPartialHeader},
		{"incomplete header after a request", 6, 0, pipelinePartialHeader},
		{"header sent byte by byte", 4, 0, sendHeaderSlowly},
		{"endless header", 1, 200 * time.Millisecond, sendEndlessHeader},
		{"foreign hosts at the status page", 1, 50 * time.Millisecond, sendForeignHost},
		{"HTTP/1.0 body without a length", 1, 50 * time.Millisecond, sendBodyWithoutLength},
		{"HTTP/2 preface after a request", 1, 50 * time.Millisecond, sendLatePreface},
		{"malformed requests", 1, 20 * time.Millisecond, sendMalformedRequest},
		{"endless HTTP/2 frames", 2, 50 * time.Millisecond, floodFrames},
		{"pipelined requests, responses not read", 2, 50 * time.Millisecond, pipeline},
		{"announced bodies that arrive slowly", 4, 0, expectAndStall},
	},
	{
		{"stalled bodies with a large length", 12, 0, stallBody},
		{"stalled gRPC bodies", 6, 0, stallCall},
		{"gzip bombs", 2, 150 * time.Millisecond, sendBomb},
		{"deep nesting in protobuf", 1, 50 * time.Millisecond, sendNestedProtobuf},
		{"deep nesting in JSON", 1, 50 * time.Millisecond, sendNestedJSON},
		{"growing JSON enums", 1, 300 * time.Millisecond, sendGrowingEnums},
		{"resources with many tags", 1, 500 * time.Millisecond, sendManyTags},
		{"garbage", 2, 20 * time.Millisecond, sendGarbage},
		{"false lengths in a body", 1, 30 * time.Millisecond, sendFalseLengths},
		{"malformed gRPC calls", 1, 30 * time.Millisecond, sendMalformedCall},
		{"abandoned streams", 2, 2 * time.Millisecond, resetStream},
		{"empty lists, and spans with many tags", 1, 200 * time.Millisecond, sendEmptyTraces},
		{"false statistics", 1, 100 * time.Millisecond, sendStatistics},
		{"metrics, logs and unknown paths", 1, 50 * time.Millisecond, requestUnservedPaths},
	},
	{
		{"new names in each span, native protocol", 1, 0, sendNewNamesNative},
		{"new names in each span, agent API", 1, 100 * time.Millisecond, sendNewNamesTraces},
		{"new names in each span, OTLP", 1, 100 * time.Millisecond, sendNewNamesOTLP},
		{"new origin with each request", 1, 100 * time.Millisecond, sendNewOrigin},
		{"connections closed during the response", 3, 20 * time.Millisecond, closeEarly},
		{"undefined key numbers", 1, 50 * time.Millisecond, useUndefinedKey},
		{"endless key definitions", 2, 200 * time.Millisecond, defineKeys},
		{"corrupt frames", 1, 30 * time.Millisecond, sendCorruptFrames},
		{"incomplete frames", 6, 0, sendPartialFrame},
		{"extreme weights and durations", 1, 50 * time.Millisecond, sendOddWeights},
		{"flush requests, responses not read", 1, 100 * time.Millisecond, flushWithoutReading},
		{"messages after a bye", 1, 50 * time.Millisecond, sendAfterBye},
		{"spans with random times, then a disconnect", 2, 20 * time.Millisecond, sendAndClose},
	},
}
