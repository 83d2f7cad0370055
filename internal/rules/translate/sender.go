package translate

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// sender is what the selected resource says of its process.
func (a *asked) sender() spantable.Sender {
	return spantable.Sender{
		Lang:          a.said(attrLanguage),
		TracerVersion: a.join(span.OTLPVersion, a.to.String(a.said(attrSDKVersion))),
		Container:     a.normal(a.text(attrContainer)),
		Host:          a.host(),
		Env:           a.normal(a.first(attrEnvironment, attrOldEnvironment)),
	}
}

// hostless are platforms whose processes run on no host, as far as anybody is told.
var hostless = map[string]bool{
	"gcp_cloud_functions": true, "gcp_cloud_run": true, "azure_functions": true, "azure.functions": true,
	"azure_app_service": true, "azure.app_service": true,
	"azure_container_apps": true, "azure.container_apps": true,
}

// local are names that any host has.
var local = map[string]bool{
	"0.0.0.0": true, "127.0.0.1": true, "localhost": true, "localhost.localdomain": true,
	"localhost6.localdomain6": true, "ip6-localhost": true,
}

// host is the name of the resource's host as the ingest finds it, empty where the agent takes
// its own: it knows that one.
func (a *asked) host() spantable.Text {
	if name := a.anyHost(); !local[a.to.String(name)] {
		return name
	}
	return spantable.Text{}
}

func (a *asked) anyHost() spantable.Text {
	says := func(l spantable.Label) string { return a.to.String(a.text(l)) }
	first := func(labels ...spantable.Label) spantable.Text {
		for _, l := range labels {
			if a.process.Set.Has(l) {
				return a.text(l)
			}
		}
		return spantable.Text{}
	}
	switch provider := says(attrCloud); {
	case hostless[says(attrPlatform)]:
		return spantable.Text{}
	case a.process.Set.Has(attrHost):
		return a.value(a.process.Tag(&a.request.Table, attrHost)) // of any type
	case a.process.Set.Has(attrDatadogHost):
		return a.text(attrDatadogHost)
	case says(attrLaunchType) == "fargate":
		return spantable.Text{}
	case provider == "aws":
		return first(attrHostID)
	case provider == "gcp":
		return a.hostOfGCP()
	case provider == "azure" || !a.process.Set.Has(attrNode):
		return first(attrHostID, attrHostName)
	case a.process.Set.Has(attrCluster):
		return a.join(says(attrNode), "-", says(attrCluster))
	}
	return a.text(attrNode)
}

// hostOfGCP is the name of a host there: that of the machine, without its domain, and its
// project.
func (a *asked) hostOfGCP() spantable.Text {
	if !a.process.Set.Has(attrHostName) || !a.process.Set.Has(attrAccount) {
		return spantable.Text{}
	}
	name := a.to.String(a.text(attrHostName))
	if strings.Count(name, ".") >= 3 {
		name, _, _ = strings.Cut(name, ".")
	}
	return a.join(name, ".", a.to.String(a.text(attrAccount)))
}
