package main

import (
	"context"
	"errors"
	"time"
)

// shape is one kind of hostile behavior.
type shape struct {
	name   string
	atOnce int           // number of simultaneous attempts
	every  time.Duration // pause of each of them between attempts
	try    func(context.Context, *target) error
}

// errAnswered reports a response that a daemon must not give.
var errAnswered = errors.New("a daemon must not answer that")

// knownDefects lists shapes that the short soak skips, each with the defect that it shows. Fixing a
// defect includes removing its entry.
var knownDefects = map[string]string{}

// crowds lists all shapes by the process that runs them: one for connections (connections.go), one for
// bodies (bodies.go), and one for names (names.go).
var crowds = [][]shape{
	{
		{"connections that say nothing", 150, 0, sayNothing},
		{"connections that come and go", 2, 3 * time.Millisecond, comeAndGo},
		{"half a head", 6, 0, halfHead},
		{"half a head behind a request", 6, 0, halfHeadBehind},
		{"a head a byte at a time", 4, 0, slowHead},
		{"a head without an end", 1, 200 * time.Millisecond, endlessHead},
		{"odd hosts at the page", 1, 50 * time.Millisecond, oddHost},
		{"HTTP/1.0 without a length", 1, 50 * time.Millisecond, withoutLength},
		{"HTTP/2's preface behind a request", 1, 50 * time.Millisecond, prefaceBehind},
		{"requests that are none", 1, 20 * time.Millisecond, noRequest},
		{"frames of HTTP/2 without an end", 2, 50 * time.Millisecond, floodFrames},
		{"requests one behind the other, no answer read", 2, 50 * time.Millisecond, pipeline},
		{"bodies that are asked for and do not come", 4, 0, expectAndStall},
	},
	{
		{"stalled bodies of a large length", 12, 0, stallBody},
		{"stalled bodies of gRPC", 6, 0, stallCall},
		{"gzip that inflates without an end", 2, 150 * time.Millisecond, sendBomb},
		{"deep nesting in protobuf", 1, 50 * time.Millisecond, nestProtobuf},
		{"deep nesting in JSON", 1, 50 * time.Millisecond, nestJSON},
		{"JSON enums that grow", 1, 300 * time.Millisecond, growEnums},
		{"resources with many tags", 1, 500 * time.Millisecond, sendManyTags},
		{"garbage", 2, 20 * time.Millisecond, garbage},
		{"lengths that lie within a body", 1, 30 * time.Millisecond, lies},
		{"odd calls of gRPC", 1, 30 * time.Millisecond, oddCall},
		{"streams that are given up", 2, 2 * time.Millisecond, resetStream},
		{"lists of nothing, and tags without an end", 1, 200 * time.Millisecond, emptyTraces},
		{"statistics that lie", 1, 100 * time.Millisecond, statistics},
		{"metrics, logs and paths that nobody serves", 1, 50 * time.Millisecond, askElsewhere},
	},
	{
		{"new names in each span, at our socket", 1, 0, nameAtOurs},
		{"new names in each span, by the agent's API", 1, 100 * time.Millisecond, nameByTraces},
		{"new names in each span, by OTLP", 1, 100 * time.Millisecond, nameByOTLP},
		{"new origins with each request", 1, 100 * time.Millisecond, newOrigin},
		{"leaving while the answer is written", 3, 20 * time.Millisecond, leaveEarly},
		{"numbers that nobody defined", 1, 50 * time.Millisecond, undefinedNumber},
		{"keys with numbers, without an end", 2, 200 * time.Millisecond, numbered},
		{"garbage in frames", 1, 30 * time.Millisecond, garbleFrames},
		{"frames that stop", 6, 0, stopInFrame},
		{"weights and durations that nobody has", 1, 50 * time.Millisecond, oddWeights},
		{"flushes in a loop, unread", 1, 100 * time.Millisecond, flushUnread},
		{"talking on behind a bye", 1, 50 * time.Millisecond, talkOn},
		{"spans of every moment, then gone", 2, 20 * time.Millisecond, sendAndGo},
	},
}
