package otel

// AttributeNames contains the names of the attributes that labels are made of.
var AttributeNames = attributeNames[1:]
