package io.github.spanstatsd.client;

import java.util.Arrays;

/**
 * A list of tags, each {@code key:value}. Used again and again it allocates nothing; it belongs to
 * one thread at a time. Whoever keeps one in a field calls {@link #clear} behind each span, because
 * it is what holds the span's strings then.
 *
 * <p>Add tags in the order of their bytes: another order of the same tags is another key until the
 * daemon has looked at it. What is beyond {@value #MOST} tags is left out, as the daemon would.
 */
public final class Tags {
    /** How many tags are kept. */
    public static final int MOST = 64;

    private static final String[] NOTHING = {};

    private String[] parts = NOTHING;
    private int length;

    /** Adds {@code key:value}. */
    public Tags add(String key, String value) {
        if (length == 2 * MOST || key == null) {
            return this;
        }
        if (length == parts.length) {
            parts = Arrays.copyOf(parts, Math.max(8, 2 * length));
        }
        parts[length] = key;
        parts[length + 1] = value;
        length += 2;
        return this;
    }

    /** Adds a tag that has its colon already. */
    public Tags add(String tag) {
        return add(tag, null);
    }

    /** How many tags there are. */
    public int size() {
        return length / 2;
    }

    public boolean isEmpty() {
        return length == 0;
    }

    /** Lets go of all tags. */
    public void clear() {
        Arrays.fill(parts, 0, length, null);
        length = 0;
    }

    void set(Tags other) {
        clear();
        for (int i = 0; other != null && i < other.length; i += 2) {
            add(other.parts[i], other.parts[i + 1]);
        }
    }

    /** How many parts there are of a list that may be null: keys at even places, at odd ones values, null where the key is all. */
    static int lengthOf(Tags tags) {
        return tags == null ? 0 : tags.length;
    }

    String part(int i) {
        return parts[i];
    }

    static int hash(Tags tags) {
        int hash = 0;
        for (int i = 0; i < lengthOf(tags); i++) {
            String part = tags.parts[i];
            hash = 31 * hash + (part == null ? 0 : part.hashCode());
        }
        return hash;
    }

    /** Whether two lists that may be null hold the same. */
    static boolean same(Tags a, Tags b) {
        int length = lengthOf(a);
        if (length != lengthOf(b)) {
            return false;
        }
        for (int i = 0; i < length; i++) {
            String one = a.parts[i];
            String other = b.parts[i];
            if (one != other && (one == null || !one.equals(other))) {
                return false;
            }
        }
        return true;
    }

    /** A list of its own, with copies of the strings; null for none. */
    static Tags copy(Tags tags) {
        if (lengthOf(tags) == 0) {
            return null;
        }
        Tags copy = new Tags();
        copy.parts = new String[tags.length];
        for (int i = 0; i < tags.length; i++) {
            copy.parts[i] = Key.copy(tags.parts[i]);
        }
        copy.length = tags.length;
        return copy;
    }
}
