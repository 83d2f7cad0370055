package otlp

// The tags of the fields of OTLP's messages that are read, version 1: number and way of writing.
const (
	requestResourceSpans = 1<<3 | asBytes

	resourceSpansResource = 1<<3 | asBytes
	resourceSpansScopes   = 2<<3 | asBytes

	resourceAttributes = 1<<3 | asBytes
	resourceEntities   = 3<<3 | asBytes

	scopeSpansScope = 1<<3 | asBytes
	scopeSpansSpans = 2<<3 | asBytes

	scopeAttributes = 3<<3 | asBytes

	spanTraceID    = 1<<3 | asBytes
	spanID         = 2<<3 | asBytes
	spanTraceState = 3<<3 | asBytes
	spanParentID   = 4<<3 | asBytes
	spanName       = 5<<3 | asBytes
	spanKind       = 6<<3 | asVarint
	spanStart      = 7<<3 | asFixed64
	spanEnd        = 8<<3 | asFixed64
	spanAttributes = 9<<3 | asBytes
	spanEvents     = 11<<3 | asBytes
	spanLinks      = 13<<3 | asBytes
	spanStatus     = 15<<3 | asBytes

	statusCode = 3<<3 | asVarint

	keyValueKey   = 1<<3 | asBytes
	keyValueValue = 2<<3 | asBytes

	valueText   = 1<<3 | asBytes
	valueBool   = 2<<3 | asVarint
	valueInt    = 3<<3 | asVarint
	valueDouble = 4<<3 | asFixed64
	valueArray  = 5<<3 | asBytes
	valueList   = 6<<3 | asBytes
	valueBytes  = 7<<3 | asBytes
	valueIndex  = 8<<3 | asVarint // of a text, in the signal of profiles
)
