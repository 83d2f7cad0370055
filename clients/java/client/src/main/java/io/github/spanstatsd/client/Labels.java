package io.github.spanstatsd.client;

/**
 * The labels of a span. Null and empty labels are not set. An object can be filled and published
 * repeatedly, by one thread at a time.
 *
 * <p>For a garbage collector, a new object per span is cheap, but one kept in a field is not: the
 * collector tracks each write of a label to an old object. The long {@link
 * SpanstatsClient#publish(String, String, String, String, String, TraceRoot, int, Tags, String,
 * String, String, String, boolean, Tags, long, long, int, double) publish} needs no object. If you
 * keep one, call {@link #clear} after each span.
 */
public final class Labels {
    String service;
    String operation;
    String resource;
    String type;
    String kind;
    TraceRoot traceRoot = TraceRoot.NOT_SET;
    int httpStatus;
    final Tags peerTags = new Tags();
    String httpMethod;
    String httpEndpoint;
    String grpcStatus;
    String serviceSource;
    boolean synthetics;
    final Tags additionalTags = new Tags();

    public Labels service(String service) {
        this.service = service;
        return this;
    }

    public Labels operation(String operation) {
        this.operation = operation;
        return this;
    }

    public Labels resource(String resource) {
        this.resource = resource;
        return this;
    }

    public Labels type(String type) {
        this.type = type;
        return this;
    }

    public Labels kind(String kind) {
        this.kind = kind;
        return this;
    }

    public Labels traceRoot(TraceRoot traceRoot) {
        this.traceRoot = traceRoot;
        return this;
    }

    /** Sets the HTTP status; 0 for none. */
    public Labels httpStatus(int httpStatus) {
        this.httpStatus = httpStatus;
        return this;
    }

    public Labels peerTag(String key, String value) {
        peerTags.add(key, value);
        return this;
    }

    public Labels peerTag(String tag) {
        peerTags.add(tag);
        return this;
    }

    /** Copies a list, and replaces the current tags. */
    public Labels peerTags(Tags tags) {
        peerTags.set(tags);
        return this;
    }

    public Labels httpMethod(String httpMethod) {
        this.httpMethod = httpMethod;
        return this;
    }

    public Labels httpEndpoint(String httpEndpoint) {
        this.httpEndpoint = httpEndpoint;
        return this;
    }

    /** Sets the gRPC status as a decimal number. */
    public Labels grpcStatus(String grpcStatus) {
        this.grpcStatus = grpcStatus;
        return this;
    }

    public Labels serviceSource(String serviceSource) {
        this.serviceSource = serviceSource;
        return this;
    }

    public Labels synthetics(boolean synthetics) {
        this.synthetics = synthetics;
        return this;
    }

    public Labels additionalTag(String key, String value) {
        additionalTags.add(key, value);
        return this;
    }

    public Labels additionalTag(String tag) {
        additionalTags.add(tag);
        return this;
    }

    /** Copies a list, and replaces the current tags. */
    public Labels additionalTags(Tags tags) {
        additionalTags.set(tags);
        return this;
    }

    /** Removes all labels. */
    public Labels clear() {
        service = operation = resource = type = kind = null;
        httpMethod = httpEndpoint = grpcStatus = serviceSource = null;
        traceRoot = TraceRoot.NOT_SET;
        httpStatus = 0;
        synthetics = false;
        peerTags.clear();
        additionalTags.clear();
        return this;
    }
}
