package io.github.spanstatsd.bench;

import io.github.spanstatsd.client.Labels;
import io.github.spanstatsd.client.Tags;
import io.github.spanstatsd.client.TraceRoot;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.AttributesBuilder;

/**
 * Labels of the span with the n-th key: half are servers, a quarter clients with three peer tags, a
 * quarter internal. As in an application, names of services, operations and hosts are shared
 * objects; each key has its own resource and route.
 */
final class Span {
    private static final String[] SERVICES = named("service-", 4);
    private static final String[] OPERATIONS = named("operation.", 16);
    private static final String[] HOSTS = named("db.example-", 3);
    private static final String[] METHODS = {"GET", "POST", "PUT", "DELETE"};
    private static final AttributeKey<String> SERVICE = AttributeKey.stringKey("service.name");
    private static final AttributeKey<String> OPERATION = AttributeKey.stringKey("operation");
    private static final AttributeKey<String> RESOURCE = AttributeKey.stringKey("span.name");
    private static final AttributeKey<String> KIND = AttributeKey.stringKey("span.kind");
    private static final AttributeKey<Long> STATUS = AttributeKey.longKey("http.response.status_code");
    private static final AttributeKey<String> METHOD = AttributeKey.stringKey("http.request.method");
    private static final AttributeKey<String> ROUTE = AttributeKey.stringKey("http.route");
    private static final AttributeKey<String> SYSTEM = AttributeKey.stringKey("db.system");
    private static final AttributeKey<String> NAME = AttributeKey.stringKey("db.name");
    private static final AttributeKey<String> HOST = AttributeKey.stringKey("peer.hostname");

    final String service;
    final String operation;
    final String resource;
    final String type;
    final String kind;
    final TraceRoot root;
    final int status;
    final Tags peers;
    final String method;
    final String route;
    final boolean isClient;
    final String peerHost;

    Span(int number) {
        boolean isServer = number % 2 == 0;
        isClient = number % 4 == 1;
        service = SERVICES[number % SERVICES.length];
        operation = OPERATIONS[number % OPERATIONS.length];
        route = "/v1/resources/" + number + "/{id}";
        method = isServer ? METHODS[number / 2 % METHODS.length] : null;
        resource = isServer ? method + " " + route : "work " + number;
        type = isServer ? "web" : isClient ? "sql" : "";
        kind = isServer ? "server" : isClient ? "client" : "internal";
        root = isServer ? TraceRoot.TRUE : TraceRoot.FALSE;
        status = isServer ? 200 : 0;
        peerHost = HOSTS[number % HOSTS.length];
        peers = isClient ? new Tags().add("db.name", "orders").add("db.system", "postgresql").add("peer.hostname", peerHost) : null;
    }

    private static String[] named(String what, int count) {
        String[] names = new String[count];
        for (int i = 0; i < count; i++) {
            names[i] = what + i;
        }
        return names;
    }

    static Span[] all(int count) {
        Span[] all = new Span[count];
        for (int i = 0; i < count; i++) {
            all[i] = new Span(i);
        }
        return all;
    }

    Labels labels() {
        Labels l = new Labels().service(service).operation(operation).resource(resource).type(type).kind(kind).traceRoot(root).httpStatus(status);
        if (isClient) {
            l.peerTags(peers);
        }
        return method == null ? l : l.httpMethod(method).httpEndpoint(route);
    }

    /** Reads the strings, like an application that has just created them. */
    int read() {
        return last(resource) + last(route) + (method == null ? 0 : last(method)) + (peers == null ? 0 : last(peerHost));
    }

    private static int last(String text) {
        return text.hashCode() + text.charAt(text.length() - 1);
    }

    /** Returns the labels as attributes, as instrumentation creates them for each span. */
    Attributes attributes() {
        AttributesBuilder all = Attributes.builder().put(SERVICE, service).put(OPERATION, operation).put(RESOURCE, resource).put(KIND, kind);
        if (method != null) {
            all.put(STATUS, status).put(METHOD, method).put(ROUTE, route);
        }
        if (isClient) {
            all.put(SYSTEM, "postgresql").put(NAME, "orders").put(HOST, peerHost);
        }
        return all.build();
    }
}
