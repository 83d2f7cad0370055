package points

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
	"google.golang.org/protobuf/encoding/protowire"
)

// attributes writes lists of attributes in a format. Each name occurs only once in a list, with its
// first value, because receivers reject duplicates, or keep either one.
//
// Lists that are written in the same order are equal if their bytes are, so series can be compared
// by their bytes.
type attributes struct {
	format format
	bytes  []byte
	names  []string // names that cannot be added any more: those in the list, and reserved ones

	permitted []string // names that can be added; nil for all
}

// format defines how attributes are written. It is not safe for concurrent use.
type format interface {
	// nameOf returns the name of an attribute in this format.
	nameOf(attribute string) string

	// metricName returns the name of a metric in this format. It contains the unit if the format has no other
	// place for it.
	metricName(name, unit string) string

	// The following append an attribute to a list. Names and texts are valid UTF-8.
	appendText(b []byte, name, value string) []byte
	appendNumber(b []byte, name string, value int64) []byte
	appendFlag(b []byte, name string, value bool) []byte
	appendTexts(b []byte, name string, values []string) []byte

	// hasResources reports whether a resource has attributes of its own, in addition to its service.
	hasResources() bool
}

// beginList starts a new list after the existing bytes.
func (a *attributes) beginList() { a.names = a.names[:0] }

// reserveNames prevents attributes with the given names from being added to the list.
func (a *attributes) reserveNames(names ...string) {
	for _, name := range names {
		a.names = append(a.names, a.format.nameOf(name))
	}
}

// releaseNames permits all names again, including those that reserveNames has reserved.
func (a *attributes) releaseNames() { a.names = a.names[:0] }

// addText adds an attribute with a text value to the list. It does nothing if value is empty, or if the list already
// contains an attribute with this name.
func (a *attributes) addText(name, value string) {
	if value == "" {
		return
	}
	encodedName, isNew := a.addName(name)
	if isNew {
		a.bytes = a.format.appendText(a.bytes, encodedName, valid(value))
	}
}

func (a *attributes) addNumber(name string, value int64) {
	encodedName, isNew := a.addName(name)
	if isNew {
		a.bytes = a.format.appendNumber(a.bytes, encodedName, value)
	}
}

func (a *attributes) addFlag(name string, value bool) {
	encodedName, isNew := a.addName(name)
	if isNew {
		a.bytes = a.format.appendFlag(a.bytes, encodedName, value)
	}
}

// addTexts adds an attribute whose value is a list of texts to the list. It does nothing if values is empty, or if the
// list already contains an attribute with this name.
func (a *attributes) addTexts(name string, values []string) {
	if len(values) == 0 {
		return
	}
	encodedName, isNew := a.addName(name)
	if isNew {
		a.bytes = a.format.appendTexts(a.bytes, encodedName, values)
	}
}

// addName returns the name that a.format uses for an attribute, and adds this name to a.names. If the name is empty
// or not permitted, or a.names contains it already, isNew is false, and the caller must not add the attribute.
func (a *attributes) addName(attribute string) (name string, isNew bool) {
	name = valid(a.format.nameOf(attribute))
	isPermitted := a.permitted == nil || slices.Contains(a.permitted, name)
	if name == "" || !isPermitted || slices.Contains(a.names, name) {
		return name, false
	}
	a.names = append(a.names, name)
	return name, true
}

// valid returns text with each sequence of invalid UTF-8 replaced by U+FFFD. With invalid UTF-8, protobuf
// decoders would reject the whole request.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Field numbers of OTLP messages for attributes.
const (
	fieldList = 1 // attributes of Resource and of ExponentialHistogramDataPoint

	fieldKey   = 1 // of KeyValue
	fieldValue = 2

	fieldText   = 1 // of AnyValue
	fieldBool   = 2
	fieldInt    = 3
	fieldArray  = 5
	fieldValues = 1 // of ArrayValue
)

// keyValues is the format of OTLP: KeyValue messages, each as a field with the number fieldList.
type keyValues struct {
	value []byte // encoded value of the attribute that is being written
}

func (*keyValues) nameOf(attribute string) string   { return attribute }
func (*keyValues) metricName(name, _ string) string { return name }
func (*keyValues) hasResources() bool               { return true }

func (f *keyValues) appendText(b []byte, name, value string) []byte {
	f.value = protolite.AppendBytes(f.value[:0], fieldText, value)
	return f.appendPair(b, name)
}

func (f *keyValues) appendNumber(b []byte, name string, value int64) []byte {
	f.value = protolite.AppendVarint(f.value[:0], fieldInt, uint64(value))
	return f.appendPair(b, name)
}

func (f *keyValues) appendFlag(b []byte, name string, value bool) []byte {
	f.value = protolite.AppendVarint(f.value[:0], fieldBool, protowire.EncodeBool(value))
	return f.appendPair(b, name)
}

// appendTexts appends an attribute to b. Its value is an ArrayValue with one AnyValue per text.
func (f *keyValues) appendTexts(b []byte, name string, values []string) []byte {
	var array []byte
	for _, value := range values {
		anyValue := protolite.AppendBytes(nil, fieldText, valid(value))
		array = protolite.AppendBytes(array, fieldValues, anyValue)
	}
	f.value = protolite.AppendBytes(f.value[:0], fieldArray, array)
	return f.appendPair(b, name)
}

// appendPair appends a KeyValue with the given name and the value f.value.
func (f *keyValues) appendPair(b []byte, name string) []byte {
	b = protolite.AppendHead(b, fieldList, protolite.FieldSize(len(name))+protolite.FieldSize(len(f.value)))
	b = protolite.AppendBytes(b, fieldKey, name)
	return protolite.AppendBytes(b, fieldValue, f.value)
}

// labelEnd terminates each name and value in a list of labels. It does not occur in UTF-8.
const labelEnd = "\xff"

// labels is the format of Prometheus; Labels reads it. The map caches the label name of each attribute name.
type labels map[string]string

// maxCachedLabels limits the size of labels, because clients choose the names of attributes.
const maxCachedLabels = 512

// nameOf returns the Prometheus label for an attribute, for example http_route for http.route. It caches up to
// maxCachedLabels results in f.
func (f labels) nameOf(attribute string) string {
	if label, isCached := f[attribute]; isCached {
		return label
	}
	label := toLabelName(attribute)
	if len(f) < maxCachedLabels {
		f[strings.Clone(attribute)] = label
	}
	return label
}

// metricName returns a name such as http_server_request_duration_seconds. It does not repeat a unit at the end of name.
func (labels) metricName(name, unit string) string {
	converted, suffix := toLabelName(name), toLabelName(unit)
	if suffix == "" || strings.HasSuffix(converted, "_"+suffix) {
		return converted
	}
	return converted + "_" + suffix
}

func (labels) hasResources() bool { return false }

func (labels) appendText(b []byte, name, value string) []byte {
	b = appendLabelText(b, name)
	return appendLabelText(b, value)
}

func (labels) appendNumber(b []byte, name string, value int64) []byte {
	b = appendLabelText(b, name)
	b = strconv.AppendInt(b, value, 10)
	return append(b, labelEnd...)
}

func (labels) appendFlag(b []byte, name string, value bool) []byte {
	b = appendLabelText(b, name)
	b = strconv.AppendBool(b, value)
	return append(b, labelEnd...)
}

// appendTexts joins the texts. No dialect with labels has such attributes.
func (f labels) appendTexts(b []byte, name string, values []string) []byte {
	return f.appendText(b, name, valid(strings.Join(values, ",")))
}

// appendLabelText appends the name or the value of a label.
func appendLabelText(b []byte, text string) []byte {
	b = append(b, text...)
	return append(b, labelEnd...)
}

// toLabelName converts the name of an attribute to a Prometheus label by the rules of the OpenTelemetry Collector.
// Each character other than an ASCII letter or digit becomes "_". The labels le and quantile, and those that begin
// with a digit, get the prefix "key_". Labels that begin with "_" get the prefix "key".
func toLabelName(attribute string) string {
	label := strings.Map(func(r rune) rune {
		if isDigit(r) || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, attribute)
	switch {
	case label == "":
		return ""
	case label[0] == '_':
		return "key" + label
	case label == "le" || label == "quantile" || isDigit(rune(label[0])):
		return "key_" + label
	}
	return label
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// Labels iterates over the names and values in an encoded list of labels.
func Labels(list string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for list != "" {
			var name, value string
			name, list, _ = strings.Cut(list, labelEnd)
			value, list, _ = strings.Cut(list, labelEnd)
			if !yield(name, value) {
				return
			}
		}
	}
}

// writeResource writes the attributes of a resource: service.name and, if the format is OTLP, the attributes of the
// process that sends the spans. These are the attributes that Datadog's tracers and OpenTelemetry's SDKs send about
// themselves over OTLP.
func (a *attributes) writeResource(o *span.Origin, service string) {
	a.beginList()
	a.addText("service.name", service)
	if !a.format.hasResources() {
		return
	}
	for name, value := range resourceAttributes(o) {
		a.addText(name, value)
	}
	a.addTexts("datadog.process_tags", processTags(o.ProcessTags))
}

// addOverflow writes the attributes of overflow series: the daemon's instance ID, and otel.metric.overflow as in the
// OpenTelemetry SDKs.
func (a *attributes) addOverflow(instance string) {
	a.addText(instanceName, instance)
	a.addFlag("otel.metric.overflow", true)
}

// resourceAttributes iterates over the names and values of the resource attributes of a process that sends spans,
// except its service. Values can be empty. If a name occurs twice, callers must use the first value that is not
// empty.
func resourceAttributes(o *span.Origin) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for name, value := range o.EachAttribute() {
			if !yield(name, value) {
				return
			}
		}
		for _, attribute := range originAttributes(o) {
			if !yield(attribute.name, attribute.value) {
				return
			}
		}
	}
}

// originAttributes returns the resource attributes of a process that sends spans, except its service. Values can be
// empty. The result is an array, because a slice would be allocated.
func originAttributes(o *span.Origin) [12]tag {
	sdk := "datadog"
	language := sdkLanguage(o.Lang)
	sdkVersion := o.TracerVersion
	datadogID := o.RuntimeID
	if otlpVersion, isOTLP := o.OTLP(); isOTLP {
		sdk = "opentelemetry"
		language = o.Lang
		sdkVersion = otlpVersion
		datadogID = ""
	}
	return [...]tag{
		{"service.version", o.Version},
		{"service.instance.id", cmp.Or(o.RuntimeID, o.ContainerID, o.Host)},
		{"deployment.environment.name", o.Env},
		{"host.name", o.Host},
		{"container.id", o.ContainerID},
		{"telemetry.sdk.name", sdk},
		{"telemetry.sdk.language", language},
		{"telemetry.sdk.version", sdkVersion},
		{"process.runtime.name", o.LangInterpreter},
		{"process.runtime.version", o.LangVersion},
		{"vcs.ref.head.revision", o.GitCommitSHA},
		{"datadog.runtime_id", datadogID},
	}
}

// resourceAttribute returns the value of a resource attribute of a process that sends spans, or "" if the process does
// not have it. It accepts the old name deployment.environment for deployment.environment.name.
func resourceAttribute(o *span.Origin, name string) string {
	if name == "deployment.environment" { // the old name
		name = "deployment.environment.name"
	}
	for attribute, value := range resourceAttributes(o) {
		if attribute == name && value != "" {
			return value
		}
	}
	return ""
}

// sdkLanguage returns OpenTelemetry's name for the language of a Datadog tracer, for example nodejs for javascript.
func sdkLanguage(lang string) string {
	switch lang = strings.ToLower(lang); lang {
	case ".net":
		return "dotnet"
	case "jvm":
		return "java"
	case "javascript", "node":
		return "nodejs"
	}
	return lang
}

// processTags splits a comma-separated list of tags. It omits empty tags and spaces around tags.
func processTags(list string) (tags []string) {
	for text := range strings.SplitSeq(list, ",") {
		tag := strings.TrimSpace(text)
		if tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
