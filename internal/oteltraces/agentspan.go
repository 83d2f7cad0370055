package oteltraces

// text is the first of some attributes that the span, or else its resource, has as a text
// that is not empty.
func (c *Translator) text(labels ...label) string {
	for _, l := range labels {
		if !c.either.has(l) {
			continue
		}
		for _, s := range [...]*selected{&c.span, &c.process} {
			if t := c.tag(s, l); t != nil && t.kind == isText && t.text().len > 0 {
				return view(t.text().of(c.payload.body))
			}
		}
	}
	return ""
}

// integer is an attribute that the span, or else its resource, has as an integer.
func (c *Translator) integer(l label) (int64, bool) {
	if !c.either.has(l) {
		return 0, false
	}
	for _, s := range [...]*selected{&c.span, &c.process} {
		if t := c.tag(s, l); t != nil && t.kind == isInteger {
			return int64(t.bits), true
		}
	}
	return 0, false
}

func (c *Translator) tag(s *selected, l label) *tag {
	if s.set.has(l) {
		return &c.payload.tags[s.at[l]]
	}
	return nil
}

// service is a span's service.
func (c *Translator) service() string {
	if service := c.text(agentService); service != "" {
		return service
	}
	return "otlpresourcenoservicename"
}

// operation is the name of a span's operation.
func (c *Translator) operation(kind kind) string {
	if name := c.normal(c.text(agentOperation)); name != "" {
		return name
	}
	isClient, isServer := kind == kindClient, kind == kindServer
	if c.text(agentHTTPMethod, agentOldHTTPMethod) != "" && (isClient || isServer) {
		return c.request("http", isServer)
	}
	if system := c.normal(c.text(agentDBSystem, agentOldDBSystem)); system != "" && isClient {
		return c.join(system, ".query")
	}
	if system, done := c.normal(c.text(agentMessaging)), c.normal(c.text(agentMessagingOperation)); system != "" && done != "" && kind > kindInternal {
		return c.join(system, ".", done)
	}
	switch system, service := c.normal(c.text(agentRPCSystem)), c.normal(c.text(agentRPCService)); {
	case system == "aws-api" && isClient && service != "":
		return c.join("aws.", service, ".request")
	case system == "aws-api" && isClient:
		return "aws.client.request"
	case system != "" && (isClient || isServer):
		return c.request(system, isServer)
	}
	if provider, name := c.normal(c.text(agentProvider)), c.normal(c.text(agentInvoked)); provider != "" && name != "" && isClient {
		return c.join(provider, ".", name, ".invoke")
	}
	if trigger := c.normal(c.text(agentTrigger)); trigger != "" && isServer {
		return c.join(trigger, ".invoke")
	}
	if c.normal(c.text(agentGraphQLType)) != "" {
		return "graphql.server.request"
	}
	if isClient || isServer {
		return c.request(c.normal(c.text(agentProtocol)), isServer)
	}
	return otherOperations[kind]
}

// request is a request by a protocol, if that is known.
func (c *Translator) request(protocol string, isServer bool) string {
	side := "client.request"
	if isServer {
		side = "server.request"
	}
	if protocol == "" {
		return side
	}
	return c.join(protocol, ".", side)
}

// join is a name of several parts.
func (c *Translator) join(all ...string) string {
	start := len(c.scratch)
	for _, part := range all {
		c.scratch = append(c.scratch, part...)
	}
	return view(c.scratch[start:])
}

// maxAgentResource is how much the ingest leaves of a resource.
const maxAgentResource = 5000

// resourceName is what the span was about.
func (c *Translator) resourceName(rec *record) string {
	name := c.anyResourceName(rec)
	return name[:min(len(name), maxAgentResource)]
}

func (c *Translator) anyResourceName(rec *record) string {
	with := func(first, second string) string {
		if second == "" {
			return first
		}
		return c.join(first, " ", second)
	}
	if name := c.text(agentResource); name != "" {
		return name
	}
	if method := c.text(agentHTTPMethod, agentOldHTTPMethod); method != "" {
		if method == "_OTHER" {
			method = "HTTP"
		}
		switch rec.kind {
		case kindClient:
			return with(method, c.text(agentTemplate))
		case kindServer:
			return with(method, c.text(agentRoute))
		}
		return method
	}
	if done := c.text(agentMessagingOperation); done != "" {
		return with(done, c.text(agentDestination, agentDestinationName))
	}
	if method := c.text(agentRPCMethod); method != "" {
		return with(method, c.text(agentRPCService))
	}
	if query := c.text(agentGraphQLType); query != "" {
		return with(query, c.text(agentGraphQLName))
	}
	if c.text(agentDBSystem, agentOldDBSystem) != "" {
		if statement := c.text(agentStatement, agentQuery); statement != "" {
			return statement
		}
	}
	return view(rec.name.of(c.payload.body))
}

// workType is the type of a span's work.
func (c *Translator) workType(kind kind) string {
	if name := c.text(agentType); name != "" {
		return name
	}
	switch kind {
	case kindServer:
		return "web"
	case kindClient:
		if system := c.normal(c.text(agentDBSystem, agentOldDBSystem)); system != "" {
			return databaseType(system)
		}
		return "http"
	}
	return "custom"
}
