package io.github.spanstatsd.opentelemetry;

/**
 * A cache of names that are joined of two strings, such as the operation postgresql.query. It is
 * direct-mapped: a new name replaces an old one in its slot, so its memory is bounded. It is
 * thread-safe: entries are immutable, and two threads that join the same strings get equal names.
 */
final class JoinedNames {
    private static final int PLACES = 256;

    /** Longer names are not cached, because the daemon truncates operations to this length. */
    private static final int LONGEST = 100;

    private final Entry[] entries = new Entry[PLACES];
    private final boolean isLower;

    /** Creates a cache. If isLower, ASCII letters of names are in lower case. */
    JoinedNames(boolean isLower) {
        this.isLower = isLower;
    }

    private static final class Entry {
        private final String first;
        private final String second;
        private final String name;

        private Entry(String first, String second, String name) {
            this.first = first;
            this.second = second;
            this.name = name;
        }
    }

    /** Joins both strings. */
    String join(String first, String second) {
        if (first.length() > LONGEST || second.length() > LONGEST) {
            return make(first, second);
        }
        int hash = 31 * first.hashCode() + second.hashCode();
        int place = (hash ^ hash >>> 16) & PLACES - 1;
        Entry entry = entries[place];
        if (entry == null || !entry.first.equals(first) || !entry.second.equals(second)) {
            entry = new Entry(first, second, make(first, second));
            entries[place] = entry;
        }
        return entry.name;
    }

    private String make(String first, String second) {
        return isLower ? lower(first.concat(second)) : first.concat(second);
    }

    private static String lower(String text) {
        char[] all = text.toCharArray();
        for (int i = 0; i < all.length; i++) {
            if (all[i] >= 'A' && all[i] <= 'Z') {
                all[i] += 'a' - 'A';
            }
        }
        return new String(all);
    }
}
