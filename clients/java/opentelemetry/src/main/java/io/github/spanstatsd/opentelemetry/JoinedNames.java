package io.github.spanstatsd.opentelemetry;

/**
 * Names that are made of two texts, remembered so that none is made a second time: an operation
 * like postgresql.query. It is a direct-mapped cache in which a newer name takes the place of an
 * older one, so its memory is bounded whatever spans say. Any thread uses it: an entry never
 * changes, and two threads that both make one make the same.
 */
final class JoinedNames {
    private static final int PLACES = 256;

    /** What is longer is made each time: no more than that is left of an operation's name by the daemon. */
    private static final int LONGEST = 100;

    private final Entry[] entries = new Entry[PLACES];

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

    /** Both texts in one, with the letters of ASCII in lower case. */
    String join(String first, String second) {
        if (first.length() > LONGEST || second.length() > LONGEST) {
            return lower(first.concat(second));
        }
        int hash = 31 * first.hashCode() + second.hashCode();
        int place = (hash ^ hash >>> 16) & PLACES - 1;
        Entry entry = entries[place];
        if (entry == null || !entry.first.equals(first) || !entry.second.equals(second)) {
            entry = new Entry(first, second, lower(first.concat(second)));
            entries[place] = entry;
        }
        return entry.name;
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
