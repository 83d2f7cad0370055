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
	names  []string // names that cannot be added: those in the list, and reserved ones
}

// format defines how attributes are written. It is not safe for concurrent use.
type format interface {
	// nameOf returns the name of an attribute in this format.
	nameOf(attribute string) string

	// The following append an attribute to a list. Names and texts are valid UTF-8.
	appendText(b []byte, name, value string) []byte
	appendNumber(b []byte, name string, value int64) []byte
	appendFlag(b []byte, name string, value bool) []byte
	appendTexts(b []byte, name string, values []string) []byte

	// hasResources reports whether a resource has attributes of its own, in addition to its service.
	hasResources() bool
}

// begin starts a new list after the existing bytes. Attributes with reserved names are not added to
// it, because they are written elsewhere.
func (a *attributes) begin(reserved ...string) {
	a.names = a.names[:0]
	for _, name := range reserved {
		a.names = append(a.names, a.format.nameOf(name))
	}
}

// text adds an attribute, unless its value is empty: absent and empty attributes are equivalent.
func (a *attributes) text(name, value string) {
	if value == "" {
		return
	}
	if name, isNew := a.add(name); isNew {
		a.bytes = a.format.appendText(a.bytes, name, valid(value))
	}
}

func (a *attributes) number(name string, value int64) {
	if name, isNew := a.add(name); isNew {
		a.bytes = a.format.appendNumber(a.bytes, name, value)
	}
}

func (a *attributes) flag(name string, value bool) {
	if name, isNew := a.add(name); isNew {
		a.bytes = a.format.appendFlag(a.bytes, name, value)
	}
}

// texts adds an attribute whose value is a list of texts, unless the list is empty.
func (a *attributes) texts(name string, values []string) {
	if len(values) == 0 {
		return
	}
	if name, isNew := a.add(name); isNew {
		a.bytes = a.format.appendTexts(a.bytes, name, values)
	}
}

// add returns the name of an attribute in the format, and reports whether the list does not contain
// it yet.
func (a *attributes) add(attribute string) (name string, isNew bool) {
	name = valid(a.format.nameOf(attribute))
	if name == "" || slices.Contains(a.names, name) {
		return name, false
	}
	a.names = append(a.names, name)
	return name, true
}

// valid returns text with invalid UTF-8 replaced. Protobuf decoders would reject the whole request
// otherwise.
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

func (*keyValues) nameOf(attribute string) string { return attribute }
func (*keyValues) hasResources() bool             { return true }

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

// appendTexts appends an attribute whose value is an ArrayValue.
func (f *keyValues) appendTexts(b []byte, name string, values []string) []byte {
	var list []byte
	for _, value := range values {
		list = protolite.AppendBytes(list, fieldValues, protolite.AppendBytes(nil, fieldText, valid(value)))
	}
	f.value = protolite.AppendBytes(f.value[:0], fieldArray, list)
	return f.appendPair(b, name)
}

func (f *keyValues) appendPair(b []byte, name string) []byte {
	b = protolite.AppendHead(b, fieldList, protolite.Size(len(name))+protolite.Size(len(f.value)))
	return protolite.AppendBytes(protolite.AppendBytes(b, fieldKey, name), fieldValue, f.value)
}

// labelEnd terminates each name and value in a list of labels. It does not occur in UTF-8.
const labelEnd = "\xff"

// labels is the format of Prometheus; Labels reads it. The map caches the label of each attribute.
// Its size is limited, because clients choose the names.
type labels map[string]string

const mostLabelNames = 512

// nameOf returns the label of an attribute. A label's label is itself.
func (f labels) nameOf(attribute string) string {
	label, isKnown := f[attribute]
	if !isKnown {
		label = labelOf(attribute)
		if len(f) < mostLabelNames {
			f[strings.Clone(attribute)] = label
		}
	}
	return label
}

func (labels) hasResources() bool { return false }

func (labels) appendText(b []byte, name, value string) []byte {
	return append(append(append(append(b, name...), labelEnd...), value...), labelEnd...)
}

func (labels) appendNumber(b []byte, name string, value int64) []byte {
	b = append(append(b, name...), labelEnd...)
	return append(strconv.AppendInt(b, value, 10), labelEnd...)
}

func (labels) appendFlag(b []byte, name string, value bool) []byte {
	b = append(append(b, name...), labelEnd...)
	return append(strconv.AppendBool(b, value), labelEnd...)
}

// appendTexts joins the texts. No dialect with labels has such attributes.
func (f labels) appendTexts(b []byte, name string, values []string) []byte {
	return f.appendText(b, name, valid(strings.Join(values, ",")))
}

// labelOf converts the name of an attribute to a label according to the rules of Prometheus, as the
// Collector does. Labels with a special meaning in Prometheus get a prefix, otherwise a span could
// make a scrape invalid.
func labelOf(attribute string) string {
	label := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, attribute)
	switch {
	case strings.HasPrefix(label, "_"):
		return "key" + label
	case label == "le", label == "quantile", label != "" && label[0] <= '9':
		return "key_" + label
	}
	return label
}

// Labels iterates over the labels of a list.
func Labels(list string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for list != "" {
			name, rest, _ := strings.Cut(list, labelEnd)
			value, rest, _ := strings.Cut(rest, labelEnd)
			if list = rest; !yield(name, value) {
				return
			}
		}
	}
}

// resource writes the attributes of a series' resource: those that Datadog's tracers, or
// OpenTelemetry's SDKs, send about themselves over OTLP, and those that distinguish instances of a
// service. The origin's resource attributes precede its fields, so they take precedence if names
// are equal.
func (a *attributes) resource(o *span.Origin, service string) {
	a.begin()
	a.text("service.name", service)
	if !a.format.hasResources() {
		return
	}
	for name, value := range resourceAttributes(o) {
		a.text(name, value)
	}
	a.texts("datadog.process_tags", processTags(o.ProcessTags))
}

// overflow writes the attributes of overflow series, as in the OpenTelemetry SDKs, and the daemon's
// instance ID, which all series have.
func (a *attributes) overflow(instance string) {
	a.text(instanceName, instance)
	a.flag("otel.metric.overflow", true)
}

// resourceAttributes iterates over the resource attributes of an origin, except its service. If a
// name occurs twice, the first takes precedence.
func resourceAttributes(o *span.Origin) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for name, value := range o.EachAttribute() {
			if !yield(name, value) {
				return
			}
		}
		sdk, language, runtimeID := "datadog", sdkLanguage(o.Lang), o.RuntimeID
		version, isOTLP := o.OTLP()
		if isOTLP {
			sdk, language, runtimeID = "opentelemetry", o.Lang, ""
		} else {
			version = o.TracerVersion
		}
		for _, attribute := range [...][2]string{
			{"service.version", o.Version},
			{"service.instance.id", cmp.Or(o.RuntimeID, o.ContainerID, o.Host)},
			{"deployment.environment.name", o.Env},
			{"host.name", o.Host},
			{"container.id", o.ContainerID},
			{"telemetry.sdk.name", sdk},
			{"telemetry.sdk.language", language},
			{"telemetry.sdk.version", version},
			{"process.runtime.name", o.LangInterpreter},
			{"process.runtime.version", o.LangVersion},
			{"vcs.ref.head.revision", o.GitCommitSHA},
			{"datadog.runtime_id", runtimeID},
		} {
			if !yield(attribute[0], attribute[1]) {
				return
			}
		}
	}
}

// resourceAttribute returns the resource attribute of an origin for the dimension with the given
// name, for formats without resources.
func resourceAttribute(o *span.Origin, name string) string {
	if name == "deployment.environment" { // the older name
		name = "deployment.environment.name"
	}
	for known, value := range resourceAttributes(o) {
		if known == name && value != "" {
			return value
		}
	}
	return ""
}

// sdkLanguage returns OpenTelemetry's name for a tracer's language.
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

// processTags splits a list of tags at its commas.
func processTags(list string) (tags []string) {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
