package otel

// AttributeNames are those of the attributes that labels are made of.
var AttributeNames = attributeNames[1:]
