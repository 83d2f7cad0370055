package oteltraces

// operation names the kind of work of the selected span, as the agent does with the second
// version of its names for spans of OpenTelemetry.
func (c *Counter) operation(kind kind) string {
	isClient, isServer := kind == kindClient, kind == kindServer
	if c.written(labelHTTPMethod, labelOldHTTPMethod) != "" && (isClient || isServer) {
		return c.request("http", isServer)
	}
	if system := c.written(labelDBSystem, labelOldDBSystem); system != "" && isClient {
		return c.joined(system, ".query")
	}
	if system, done := c.written(labelMessagingSystem), c.messagingOperation(); system != "" && done != "" && kind > kindInternal {
		return c.joined(system, ".", done)
	}
	if system := c.written(labelRPCSystem, labelOldRPCSystem); system != "" && (isClient || isServer) {
		return c.rpc(system, isServer)
	}
	if provider, name := c.written(labelFaaSProvider), c.written(labelFaaSName); provider != "" && name != "" && isClient {
		return c.joined(provider, ".", name, ".invoke")
	}
	if trigger := c.written(labelFaaSTrigger); trigger != "" && isServer {
		return c.joined(trigger, ".invoke")
	}
	if c.written(labelGraphQLType) != "" {
		return "graphql.server.request"
	}
	if isClient || isServer {
		return c.request(c.written(labelProtocol), isServer)
	}
	return otherOperations[kind]
}

// otherOperations are those of spans that say no more of themselves.
var otherOperations = [kinds]string{
	kindUnspecified: "Internal", kindInternal: "Internal", kindProducer: "Producer", kindConsumer: "Consumer",
}

func (c *Counter) messagingOperation() string {
	if done := c.written(labelMessagingOperationType, labelOldMessagingOperation); done != "" {
		return done
	}
	return c.written(labelMessagingOperation)
}

// rpc is a call, which of AWS is named by the service that is called.
func (c *Counter) rpc(system string, isServer bool) string {
	if system != "aws-api" || isServer {
		return c.request(system, isServer)
	}
	if service := c.written(labelRPCService); service != "" {
		return c.joined("aws.", service, ".request")
	}
	return "aws.client.request"
}

// request is a request by a protocol, if that is known.
func (c *Counter) request(protocol string, isServer bool) string {
	side := "client.request"
	if isServer {
		side = "server.request"
	}
	switch protocol {
	case "":
		return side
	case "http":
		if isServer {
			return "http.server.request"
		}
		return "http.client.request"
	}
	return c.joined(protocol, ".", side)
}

// joined is a name of several parts, in lower case.
func (c *Counter) joined(all ...string) string {
	start := len(c.scratch)
	for _, part := range all {
		for i := range len(part) {
			b := part[i]
			if 'A' <= b && b <= 'Z' {
				b += 'a' - 'A'
			}
			c.scratch = append(c.scratch, b)
		}
	}
	return view(c.scratch[start:])
}

// workType is the type of work of the selected span, as the agent names it.
func (c *Counter) workType(kind kind) string {
	switch kind {
	case kindServer:
		return "web"
	case kindClient:
		if system := c.written(labelDBSystem, labelOldDBSystem); system != "" {
			return databaseType(system)
		}
		return "http"
	}
	return "custom"
}
