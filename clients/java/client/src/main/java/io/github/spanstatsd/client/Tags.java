package io.github.spanstatsd.client;

import java.util.Arrays;

/**
 * A list of tags, each {@code key:value}. Reusing a list allocates nothing. It can be used by one
 * thread at a time. If you keep a list in a field, call {@link #clear} after each span, because the
 * list refers to the span's strings.
 *
 * <p>Add tags in the order of their bytes: until the daemon has normalized them, the same tags in
 * another order are another key. Tags after the first {@value #MOST} are dropped, as by the daemon.
 */
public final class Tags {
    /** Maximum number of tags. */
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

    /** Adds a tag that contains its colon. */
    public Tags add(String tag) {
        return add(tag, null);
    }

    /** Returns the number of tags. */
    public int size() {
        return length / 2;
    }

    public boolean isEmpty() {
        return length == 0;
    }

    /** Removes all tags. */
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

    /**
     * Returns the number of parts of a list, 0 for null. Keys are at even indexes, values at odd
     * ones; a value is null if the tag is only a key.
     */
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

    /** Reports whether two lists are equal. Both can be null. */
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

    /** Returns a copy of a list and its strings; null for an empty list. */
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
