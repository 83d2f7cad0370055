package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A key encoded in advance, for a program that publishes it many times. It saves the comparison of
 * labels for each span. So keep one wherever labels are determined by one object (a route, a
 * statement, a peer). It is immutable, independent of a client, and does not refer to the labels
 * that it was made of.
 */
public final class EncodedKey {
    final byte[] bytes;
    final Key labels;
    /**
     * The key with its number in the table that was used last. Any thread can write it, because it
     * is immutable.
     */
    private Numbered numbered;

    private static final class Numbered {
        final int table;
        final Key key;

        Numbered(int table, Key key) {
            this.table = table;
            this.key = key;
        }
    }

    private EncodedKey(Labels l) {
        labels = new Key(0, hash(l), text(l.service), text(l.operation), text(l.resource), text(l.type), text(l.kind), root(l),
                Math.max(0, l.httpStatus), Tags.copy(l.peerTags), text(l.httpMethod), text(l.httpEndpoint), text(l.grpcStatus),
                text(l.serviceSource), l.synthetics, Tags.copy(l.additionalTags));
        ByteBuffer room = ByteBuffer.allocate(labels.bound());
        bytes = Arrays.copyOf(room.array(), labels.put(room, 0));
    }

    /** Encodes labels. Later changes of the labels have no effect. */
    public static EncodedKey of(Labels labels) {
        return new EncodedKey(labels);
    }

    /**
     * Returns the key with its number in a table, which learns the key if it can; null if it
     * cannot.
     */
    Key in(KeyTable table) {
        Numbered last = numbered;
        if (last != null && last.table == table.id) {
            return last.key;
        }
        Key known = labels.findIn(table);
        if (known == null) {
            known = table.learn(bytes.length, labels);
        }
        if (known != null) {
            numbered = new Numbered(table.id, known);
        }
        return known;
    }

    private static int hash(Labels l) {
        return Key.hash(text(l.service), text(l.operation), text(l.resource), text(l.type), text(l.kind), root(l),
                Math.max(0, l.httpStatus), l.peerTags, text(l.httpMethod), text(l.httpEndpoint), text(l.grpcStatus),
                text(l.serviceSource), l.synthetics, l.additionalTags);
    }

    static String text(String label) {
        return label == null ? "" : label;
    }

    private static TraceRoot root(Labels l) {
        return l.traceRoot == null ? TraceRoot.NOT_SET : l.traceRoot;
    }
}
