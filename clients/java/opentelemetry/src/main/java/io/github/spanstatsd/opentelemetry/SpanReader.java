package io.github.spanstatsd.opentelemetry;

import io.github.spanstatsd.client.Labels;
import io.github.spanstatsd.client.TraceRoot;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.trace.data.SpanData;

/**
 * Derives the labels of a span, the same as the daemon for that span over OTLP
 * (internal/rules/otel). It is used by one thread at a time, and keeps no reference to a span after
 * clear.
 */
final class SpanReader {
    /** An OK status becomes a tag, because only the application can have set it. */
    private static final String STATUS_OK = "otel.status_code:OK";

    /** Attributes that become peer tags, sorted by name, which is also the name of the tag. */
    private static final Attribute[] TAGS = {
        Attribute.DB_COLLECTION, Attribute.DB_NAMESPACE, Attribute.DB_OPERATION, Attribute.DB_SYSTEM,
        Attribute.GEN_AI_OPERATION, Attribute.GEN_AI_PROVIDER, Attribute.GEN_AI_MODEL, Attribute.GEN_AI_RESPONSE_MODEL,
        Attribute.MESSAGING_DESTINATION, Attribute.MESSAGING_OPERATION, Attribute.MESSAGING_OPERATION_TYPE,
        Attribute.MESSAGING_SYSTEM, Attribute.PEER_SERVICE, Attribute.RPC_METHOD, Attribute.RPC_SERVICE,
        Attribute.RPC_SYSTEM, Attribute.SERVER_ADDRESS,
    };

    private final String service;
    private final Work work;
    private final SpanValues values = new SpanValues();
    private final SpanNames names;
    private final Labels labels = new Labels();

    /** Creates a reader for spans of a service, whose derived names are cached in joined. */
    SpanReader(String service, Work work, JoinedNames joined, boolean keepsNames) {
        this.service = service;
        this.work = work;
        names = new SpanNames(values, joined, keepsNames);
    }

    /** Derives a span's labels. The result is valid until {@link #clear}. */
    Labels read(SpanData span) {
        values.read(span.getAttributes());
        SpanKind kind = span.getKind();
        String name = names.name(span.getName(), kind);
        String route = values.text(Attribute.HTTP_ROUTE);
        labels.service(service)
                .operation(work.operation(values, kind))
                .resource(name)
                .type(Work.type(values, kind))
                .kind(name(kind))
                .traceRoot(isRoot(span) ? TraceRoot.TRUE : TraceRoot.FALSE)
                .httpStatus(Statuses.http(values))
                .httpMethod(values.text(Attribute.HTTP_METHOD, Attribute.OLD_HTTP_METHOD))
                .httpEndpoint(route.isEmpty() ? names.route() : route)
                .grpcStatus(Statuses.grpc(values));
        for (Attribute tag : TAGS) {
            String value = tagged(tag, kind);
            if (!value.isEmpty()) {
                labels.peerTag(tag.attributeName(), value);
            }
        }
        if (span.getStatus().getStatusCode() == StatusCode.OK) {
            labels.additionalTag(STATUS_OK);
        }
        return labels;
    }

    /** Removes all references to the span. */
    void clear() {
        values.clear();
        names.clear();
        labels.clear();
    }

    static boolean isRoot(SpanData span) {
        return !span.getParentSpanContext().isValid();
    }

    /** Reports whether a span is the first of its service in its trace. */
    static boolean isTopLevel(SpanData span) {
        return isRoot(span) || span.getKind() == SpanKind.SERVER || span.getKind() == SpanKind.CONSUMER;
    }

    /**
     * Reports whether peer attributes in spans of this kind name the called service. In a server
     * span they describe the client.
     */
    private static boolean hasPeer(SpanKind kind) {
        return kind == SpanKind.CLIENT || kind == SpanKind.PRODUCER || kind == SpanKind.CONSUMER;
    }

    /**
     * Returns the value of a peer tag, or an empty string if spans of this kind do not have the
     * tag. The older name of a server's address is OLD_PEER_NAME.
     */
    private String tagged(Attribute tag, SpanKind kind) {
        boolean isPeer = tag == Attribute.PEER_SERVICE || tag == Attribute.SERVER_ADDRESS;
        if (isPeer && !hasPeer(kind)) {
            return "";
        }
        if (tag == Attribute.SERVER_ADDRESS) {
            return values.text(tag, Attribute.OLD_PEER_NAME);
        }
        return tag.older() == null ? values.text(tag) : values.text(tag, tag.older());
    }

    private static String name(SpanKind kind) {
        switch (kind) {
            case SERVER:
                return "server";
            case CLIENT:
                return "client";
            case PRODUCER:
                return "producer";
            case CONSUMER:
                return "consumer";
            default:
                return "internal";
        }
    }
}
