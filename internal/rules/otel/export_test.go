package otel

import "slices"

// AttributeNames contains the names of the attributes that labels are made of.
var AttributeNames = attributeNames[1:]

// NameAttributes contains the names of the attributes that names are made of, among others.
var NameAttributes = slices.Concat(AttributeNames, nameAttributes[nameLabels:])
