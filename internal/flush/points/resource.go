package points

import (
	"cmp"
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
	for name, value := range o.EachAttribute() {
		a.text(name, value)
	}
	a.text("service.version", o.Version)
	a.text("service.instance.id", cmp.Or(o.RuntimeID, o.ContainerID, o.Host))
	a.text("deployment.environment.name", o.Env)
	a.text("host.name", o.Host)
	a.text("container.id", o.ContainerID)
	version, isOTLP := o.OTLP()
	if isOTLP {
		a.text("telemetry.sdk.name", "opentelemetry")
		a.text("telemetry.sdk.language", o.Lang)
		a.text("telemetry.sdk.version", version)
	} else {
		a.text("telemetry.sdk.name", "datadog")
		a.text("telemetry.sdk.language", sdkLanguage(o.Lang))
		a.text("telemetry.sdk.version", o.TracerVersion)
	}
	a.text("process.runtime.name", o.LangInterpreter)
	a.text("process.runtime.version", o.LangVersion)
	a.text("vcs.ref.head.revision", o.GitCommitSHA)
	if !isOTLP {
		a.text("datadog.runtime_id", o.RuntimeID)
	}
	a.texts("datadog.process_tags", processTags(o.ProcessTags))
}

// saidBy is what an origin says by an attribute of a resource, for who names it as a dimension: labels
// have no resource beside them.
func saidBy(o *span.Origin, name string) string {
	switch name {
	case "service.version":
		return o.Version
	case "service.instance.id":
		return cmp.Or(o.Attribute(name), o.RuntimeID, o.ContainerID, o.Host)
	case "deployment.environment.name":
		return o.Env
	case "host.name":
		return o.Host
	case "container.id":
		return o.ContainerID
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
