package io.github.spanstatsd.client;

import java.nio.ByteBuffer;

/**
 * Encodes labels canonically: equal labels have equal bytes. Labels must not be null.
 *
 * <p>The labels are separate parameters, here and in {@link Key}. An object for them would either
 * be garbage, or be old, so that the garbage collector tracks each change of its fields.
 *
 * <p>Labels over the daemon's limit are truncated a few bytes after the limit, so that the daemon
 * truncates them to the same label.
 */
final class KeyWriter {
    private static final int MORE = 4;
    private static final int NAME = 100 + MORE;
    private static final int RESOURCE = 5000 + MORE;
    private static final int LABEL = 200 + MORE;
    private static final int ADDITIONAL = 401 + MORE;
    private static final int MOST_ADDITIONAL = 4;

    private static final int ELEMENTS = 14;
    /** Upper bound on the bytes of a key without its strings. */
    private static final int OVERHEAD = 80;
    /** Upper bound on the bytes of a string's header, and of the colon in a tag. */
    private static final int HEADER = 4;

    private KeyWriter() {}

    /** Returns an upper bound on the bytes of a key. It only adds, to be fast. */
    static int bound(
            String service, String operation, String resource, String type, String kind, Tags peerTags, String httpMethod,
            String httpEndpoint, String grpcStatus, String serviceSource, Tags additionalTags) {
        return OVERHEAD + bound(service, NAME) + bound(operation, NAME) + bound(resource, RESOURCE) + bound(type, NAME)
                + bound(kind, LABEL) + bound(peerTags, Tags.MOST, LABEL) + bound(httpMethod, LABEL) + bound(httpEndpoint, LABEL)
                + bound(grpcStatus, LABEL) + bound(serviceSource, LABEL) + bound(additionalTags, MOST_ADDITIONAL, ADDITIONAL);
    }

    private static int bound(String text, int most) {
        return Math.min(most, 3 * Math.min(most, text.length()));
    }

    private static int bound(Tags tags, int mostTags, int most) {
        int bytes = 0;
        for (int i = 0; i < Math.min(2 * mostTags, Tags.lengthOf(tags)); i += 2) {
            String value = tags.part(i + 1);
            bytes += HEADER + bound(tags.part(i), most) + (value == null ? 0 : bound(value, most));
        }
        return bytes;
    }

    /**
     * Writes the key and returns the offset after it. Labels after the last nonempty one are
     * written as one byte each, and then removed.
     */
    static int put(
            ByteBuffer b, int at, String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags) {
        int elements = elements(type, kind, traceRoot, httpStatus, peerTags, httpMethod, httpEndpoint, grpcStatus,
                serviceSource, synthetics, additionalTags);
        at = Pack.array(b, at, elements);
        at = Pack.text(b, at, service, NAME);
        at = Pack.text(b, at, operation, NAME);
        at = Pack.text(b, at, resource, RESOURCE);
        at = optional(b, at, type, NAME);
        at = optional(b, at, kind, LABEL);
        at = Pack.octet(b, at, traceRoot == TraceRoot.TRUE ? Pack.TRUE : traceRoot == TraceRoot.FALSE ? Pack.FALSE : Pack.NIL);
        at = httpStatus == 0 ? Pack.octet(b, at, Pack.NIL) : Pack.unsigned(b, at, httpStatus);
        at = tags(b, at, peerTags, Tags.MOST, LABEL);
        at = optional(b, at, httpMethod, LABEL);
        at = optional(b, at, httpEndpoint, LABEL);
        at = optional(b, at, grpcStatus, LABEL);
        at = optional(b, at, serviceSource, LABEL);
        at = Pack.octet(b, at, synthetics ? Pack.TRUE : Pack.NIL);
        at = tags(b, at, additionalTags, MOST_ADDITIONAL, ADDITIONAL);
        return at - (ELEMENTS - elements);
    }

    /** Returns the number of elements of the key, checked from the end. */
    private static int elements(
            String type, String kind, TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags) {
        return Tags.lengthOf(additionalTags) != 0 ? ELEMENTS
                : synthetics ? 13
                : !serviceSource.isEmpty() ? 12
                : !grpcStatus.isEmpty() ? 11
                : !httpEndpoint.isEmpty() ? 10
                : !httpMethod.isEmpty() ? 9
                : Tags.lengthOf(peerTags) != 0 ? 8
                : httpStatus != 0 ? 7
                : traceRoot != TraceRoot.NOT_SET ? 6
                : !kind.isEmpty() ? 5
                : !type.isEmpty() ? 4
                : 3;
    }

    private static int optional(ByteBuffer b, int at, String text, int most) {
        return text.isEmpty() ? Pack.octet(b, at, Pack.NIL) : Pack.text(b, at, text, most);
    }

    private static int tags(ByteBuffer b, int at, Tags tags, int mostTags, int most) {
        int parts = Math.min(2 * mostTags, Tags.lengthOf(tags));
        if (parts == 0) {
            return Pack.octet(b, at, Pack.NIL);
        }
        at = Pack.array(b, at, parts / 2);
        for (int i = 0; i < parts; i += 2) {
            at = tag(b, at, tags.part(i), tags.part(i + 1), most);
        }
        return at;
    }

    private static int tag(ByteBuffer b, int at, String key, String value, int most) {
        int keyBytes = Utf8.length(key, most);
        if (value == null || keyBytes == most) {
            return Utf8.put(b, Pack.textHeader(b, at, keyBytes), key, keyBytes);
        }
        int valueBytes = Utf8.length(value, most - keyBytes - 1);
        at = Utf8.put(b, Pack.textHeader(b, at, keyBytes + 1 + valueBytes), key, keyBytes);
        return Utf8.put(b, Pack.octet(b, at, ':'), value, valueBytes);
    }
}
