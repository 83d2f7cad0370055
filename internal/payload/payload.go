package payload

// Payload is a ClientStatsPayload as it stood on the wire.
type Payload struct {
	Hostname, Env, Version, Lang, TracerVersion, RuntimeID string
	AgentAggregation, Service, ContainerID                 string
	GitCommitSha, ImageTag, ProcessTags                    string

	Sequence, ProcessTagsHash uint64
	Tags                      []string
	Stats                     []Bucket
}

// Bucket is a ClientStatsBucket.
type Bucket struct {
	Start, Duration uint64
	AgentTimeShift  int64
	Stats           []Group
}

// Group is a ClientGroupedStats.
type Group struct {
	Service, Name, Resource, Type, DBType, SpanKind string
	GRPCStatusCode, HTTPMethod, HTTPEndpoint        string
	ServiceSource                                   string `msgpack:"srv_src"`

	HTTPStatusCode                       uint32
	Hits, Errors, TopLevelHits, Duration uint64
	OkSummary, ErrorSummary              []byte
	Synthetics                           bool
	IsTraceRoot                          int32

	PeerTags, AdditionalMetricTags, SpanDerivedPrimaryTags []string
}
