package io.github.spanstatsd.client;

import java.nio.ByteBuffer;

/**
 * A learned key: copies of its labels, and its number in one {@link KeyTable}. It is immutable and
 * small, because there are thousands. The copies are interned: keys share equal strings, and a
 * label that is a constant of the program is that constant, which is compared by identity.
 */
final class Key {
    private static final String NONE = "";
    private static final TraceRoot[] ROOTS = TraceRoot.values();

    private final String service;
    private final String operation;
    private final String resource;
    private final String type;
    private final String kind;
    private final int httpStatus;
    private final Tags peerTags;
    private final String httpMethod;
    private final String httpEndpoint;
    private final String grpcStatus;
    private final String serviceSource;
    private final Tags additionalTags;

    final int hash;
    /** First bytes of a snapshot with this key number, packed in a word. */
    final int head;
    final byte headBytes;
    private final boolean synthetics;
    private final byte traceRoot;

    /** Copies the labels, except lists, which are copies already. */
    Key(
            int number, int hash, String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags) {
        this.hash = hash;
        this.service = copy(service);
        this.operation = copy(operation);
        this.resource = copy(resource);
        this.type = copy(type);
        this.kind = copy(kind);
        this.traceRoot = (byte) traceRoot.ordinal();
        this.httpStatus = httpStatus;
        this.peerTags = peerTags;
        this.httpMethod = copy(httpMethod);
        this.httpEndpoint = copy(httpEndpoint);
        this.grpcStatus = copy(grpcStatus);
        this.serviceSource = copy(serviceSource);
        this.synthetics = synthetics;
        this.additionalTags = additionalTags;
        headBytes = (byte) (number < 0x80 ? 2 : number < 0x100 ? 3 : 4);
        head = 0x94 << 24 | (headBytes == 2 ? number << 16 : headBytes == 3 ? 0xcc << 16 | number << 8 : 0xcd << 16 | number);
    }

    /** Returns the interned copy of a string. */
    static String copy(String label) {
        return label == null ? null : label.isEmpty() ? NONE : new String(label.toCharArray()).intern();
    }

    /** Returns a key with the same labels and a number. */
    Key numbered(int number) {
        return new Key(number, hash, service, operation, resource, type, kind, root(), httpStatus, peerTags, httpMethod, httpEndpoint,
                grpcStatus, serviceSource, synthetics, additionalTags);
    }

    /** Returns the number in one table. */
    int number() {
        return headBytes == 2 ? head >> 16 & 0x7f : headBytes == 3 ? head >> 8 & 0xff : head & 0xffff;
    }

    private TraceRoot root() {
        return ROOTS[traceRoot];
    }

    /**
     * Strings cache their hash, so this only reads ten fields. The multiplications are independent
     * of each other.
     */
    static int hash(
            String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags) {
        int h = 0x9e3779b1 * resource.hashCode() + 0x85ebca77 * operation.hashCode() + 0xc2b2ae3d * service.hashCode()
                + 0x27d4eb2f * type.hashCode() + 0x165667b1 * kind.hashCode() + 0x2545f491 * httpMethod.hashCode()
                + 0x6c8e9cf5 * httpEndpoint.hashCode() + 0x7feb352d * grpcStatus.hashCode() + 0x846ca68b * serviceSource.hashCode()
                + 0x58f38ded * httpStatus + traceRoot.ordinal() + (synthetics ? 4 : 0)
                + 0x1b873593 * Tags.hash(peerTags) + 0x38b34ae5 * Tags.hash(additionalTags);
        h = (h ^ h >>> 15) * 0x2c1b3c6d;
        return h ^ h >>> 13;
    }

    /** Reports whether the key has these labels. */
    boolean is(
            String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags) {
        return this.httpStatus == httpStatus && this.traceRoot == traceRoot.ordinal() && this.synthetics == synthetics
                && same(this.resource, resource) && same(this.service, service) && same(this.operation, operation)
                && same(this.type, type) && same(this.kind, kind) && same(this.httpMethod, httpMethod)
                && same(this.httpEndpoint, httpEndpoint) && same(this.grpcStatus, grpcStatus)
                && same(this.serviceSource, serviceSource)
                && Tags.same(this.peerTags, peerTags) && Tags.same(this.additionalTags, additionalTags);
    }

    private static boolean same(String a, String b) {
        return a == b || a.equals(b);
    }

    /** Returns the table's key with the same labels, or null. */
    Key findIn(KeyTable table) {
        return table.find(hash, service, operation, resource, type, kind, root(), httpStatus, peerTags, httpMethod, httpEndpoint,
                grpcStatus, serviceSource, synthetics, additionalTags);
    }

    /** Returns an upper bound on the bytes that {@link #put} writes. */
    int bound() {
        return KeyWriter.bound(service, operation, resource, type, kind, peerTags, httpMethod, httpEndpoint, grpcStatus,
                serviceSource, additionalTags);
    }

    /** Writes the encoded key. */
    int put(ByteBuffer b, int at) {
        return KeyWriter.put(b, at, service, operation, resource, type, kind, root(), httpStatus, peerTags, httpMethod,
                httpEndpoint, grpcStatus, serviceSource, synthetics, additionalTags);
    }
}
