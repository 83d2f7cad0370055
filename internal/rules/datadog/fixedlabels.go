package datadog

import (
	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// label is the number of a tag's name.
type label = spantable.Label

// The labels of tags that a rule asks for whatever the agent wants, behind those that the decoder
// needs itself.
const (
	// What decides whether a span is counted, and how often.
	labelTopLevel label = iota + decode.TraceLabels
	labelTracerTopLevel
	labelMeasured
	labelPartialVersion
	labelSampleRate
	// What keys are made of.
	labelHTTPStatus
	labelOTelHTTPStatus
	labelGRPCStatus // and the four after it, in the order of agent.GRPCStatusTags
	_
	_
	_
	labelRPCResponseStatus
	labelRPCSystemName
	labelRPCSystem
	labelServiceSource
	labelHTTPMethod
	labelHTTPEndpoint
	labelHTTPRoute
	labelBaseService
	labelPeerService
	fixedLabels
)

// fixedTags are the names of the tags above.
var fixedTags = [fixedLabels]string{
	labelTopLevel: agent.TagTopLevel, labelTracerTopLevel: agent.TagTracerTopLevel,
	labelMeasured: agent.TagMeasured, labelPartialVersion: agent.TagPartialVersion,
	labelSampleRate: agent.TagSampleRate, labelHTTPStatus: agent.TagHTTPStatus,
	labelOTelHTTPStatus: agent.TagOTelHTTPStatus, labelGRPCStatus: agent.GRPCStatusTags[0],
	labelGRPCStatus + 1: agent.GRPCStatusTags[1], labelGRPCStatus + 2: agent.GRPCStatusTags[2],
	labelGRPCStatus + 3: agent.GRPCStatusTags[3], labelRPCResponseStatus: agent.GRPCStatusTags[4],
	labelRPCSystemName: agent.TagRPCSystemName, labelRPCSystem: agent.TagRPCSystem,
	labelServiceSource: "_dd.svc_src", labelHTTPMethod: "http.method", labelHTTPEndpoint: "http.endpoint",
	labelHTTPRoute: "http.route", labelBaseService: agent.TagBaseService, labelPeerService: "peer.service",
}
