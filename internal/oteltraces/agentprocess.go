package oteltraces

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// factsRoom is more than the facts of a process take beside the name of its host, since the
// agent cuts each.
const factsRoom = 2 << 10

// facts begins a payload with what its resource says of the process.
func (c *Translator) facts(dst []byte) []byte {
	c.span.set, c.either, c.scratch = labelSet{}, c.process.set, c.scratch[:0]
	dst = append(dst, msgpack.FixMap|6)
	dst = appendText(appendText(dst, "language_name"), c.said(agentLanguage))
	dst = appendText(appendText(dst, "tracer_version"), c.join(span.OTLPVersion, c.said(agentSDKVersion)))
	dst = appendText(appendText(dst, "container_id"), c.normal(c.text(agentContainer)))
	dst = appendText(appendText(dst, "hostname"), c.host())
	return appendText(appendText(dst, "env"), c.normal(c.text(agentEnvironment, agentOldEnvironment)))
}

// said is what the resource says, of any type, as the value of a tag.
func (c *Translator) said(l label) string {
	if !c.process.set.has(l) {
		return ""
	}
	start := len(c.scratch)
	c.scratch = c.payload.tags[c.process.at[l]].append(c.scratch, c.payload.body)
	return c.normal(view(c.scratch[start:]))
}

// normal is a text as the value of a tag.
func (c *Translator) normal(text string) string {
	start := len(c.scratch)
	c.scratch = appendTagValue(c.scratch, text)
	return view(c.scratch[start:])
}

// hostless are platforms whose processes run on no host, as far as anybody is told.
var hostless = map[string]bool{
	"gcp_cloud_functions": true, "gcp_cloud_run": true, "azure_functions": true, "azure.functions": true,
	"azure_app_service": true, "azure.app_service": true, "azure_container_apps": true, "azure.container_apps": true,
}

// local are names that any host has.
var local = map[string]bool{
	"0.0.0.0": true, "127.0.0.1": true, "localhost": true, "localhost.localdomain": true, "localhost6.localdomain6": true, "ip6-localhost": true,
}

// host is the name of the resource's host as the ingest finds it, empty where the agent
// takes its own: it knows that one.
func (c *Translator) host() string {
	if name := c.anyHost(); !local[name] {
		return name
	}
	return ""
}

func (c *Translator) anyHost() string {
	has := func(l label) bool { return c.process.set.has(l) }
	first := func(labels ...label) string {
		for _, l := range labels {
			if has(l) {
				return c.text(l)
			}
		}
		return ""
	}
	switch provider := c.text(agentCloud); {
	case hostless[c.text(agentPlatform)]:
		return ""
	case has(agentHost):
		return c.value(c.tag(&c.process, agentHost)) // of any type
	case has(agentDatadogHost):
		return c.text(agentDatadogHost)
	case c.text(agentLaunchType) == "fargate":
		return ""
	case provider == "aws":
		return first(agentHostID)
	case provider == "gcp":
		return c.hostOfGCP()
	case provider == "azure" || !has(agentNode):
		return first(agentHostID, agentHostName)
	case has(agentCluster):
		return c.join(c.text(agentNode), "-", c.text(agentCluster))
	}
	return c.text(agentNode)
}

// hostOfGCP is the name of a host there: that of the machine, without its domain, and its
// project.
func (c *Translator) hostOfGCP() string {
	if !c.process.set.has(agentHostName) || !c.process.set.has(agentAccount) {
		return ""
	}
	name := c.text(agentHostName)
	if strings.Count(name, ".") >= 3 {
		name, _, _ = strings.Cut(name, ".")
	}
	return c.join(name, ".", c.text(agentAccount))
}
