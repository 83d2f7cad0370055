package ingest

// AppendTagValue is tried value by value.
var AppendTagValue = appendTagValue

// AttributeNames are those of the attributes that are always read.
var AttributeNames = attrNames[1:]
