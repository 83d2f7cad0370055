package points

import (
	"cmp"
	"iter"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// resource writes who sent a series: what Datadog's tracers, or OpenTelemetry's SDKs, say of
// themselves over OTLP, and what tells two instances of a service apart. What the origin keeps of
// its resource comes first, so that it stands where another field would say it in its place. Labels
// say the service.
func (a *attributes) resource(o *span.Origin, service string) {
	a.begin()
	a.text("service.name", service)
	if a.labels != nil {
		return
	}
	for name, value := range said(o) {
		a.text(name, value)
	}
	a.texts("datadog.process_tags", processTags(o.ProcessTags))
}

// said visits the attributes of a resource that an origin says, but for its service. Of two with one
// name the first counts.
func said(o *span.Origin) iter.Seq2[string, string] {
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
		for _, one := range [...][2]string{
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
			if !yield(one[0], one[1]) {
				return
			}
		}
	}
}

// saidBy is the value of an attribute of an origin's resource, for a dimension with that name: labels
// have no resource beside them.
func saidBy(o *span.Origin, name string) string {
	if name == "deployment.environment" { // the older name
		name = "deployment.environment.name"
	}
	for known, value := range said(o) {
		if known == name && value != "" {
			return value
		}
	}
	return ""
}

// sdkLanguage is OpenTelemetry's name of a language that a tracer names.
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

// processTags are the tags of a list with commas.
func processTags(list string) (tags []string) {
	for tag := range strings.SplitSeq(list, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
