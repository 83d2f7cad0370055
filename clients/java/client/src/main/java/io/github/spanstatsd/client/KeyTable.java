package io.github.spanstatsd.client;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The learned keys and the numbers that are sent instead of them. Any thread can look up a key
 * without a lock. To learn a key, a thread tries to get the only lock, and does not learn it if
 * another thread has the lock.
 *
 * <p>A key is looked up by the hash of its labels and then compared label by label, so the result
 * is always correct. The lookup checks only a few slots, because labels from an attacker can have
 * equal hashes. Unique keys are not learned: the first use only notes the hash, in a slot that
 * others can overwrite, and the second use gives the key a number for the lifetime of the table.
 *
 * <p>The table starts small. When it is full, the thread with the lock copies it to arrays of twice
 * the size. Arrays are filled before they are published, and keys are only added to the newest
 * arrays, with the lock. So a thread that uses older arrays never gets a wrong key. At worst it
 * misses a recently learned key and sends the key in full, or finds it with the lock.
 */
final class KeyTable {
    /** Number of slots to check. */
    private static final int PROBES = 8;
    /** Initial capacity in keys. */
    private static final int FIRST = 64;
    private static final int SLOTS_A_KEY = 4;
    /** Initial and maximum number of slots for noted hashes. */
    private static final int NOTED_FIRST = 1 << 8;
    private static final int NOTED = 1 << 12;
    private static final int LISTS = 64;
    /** Limits on the bytes of a learned key, and on the mean over all learned keys. */
    private static final int LONGEST = 2048;
    private static final int MEAN = 128;
    /** While a table replaces another, a connection has defined keys of both. */
    private static final int GENERATIONS = 2;

    private static final AtomicInteger IDS = new AtomicInteger();
    private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(Key[].class);

    /** Unique in the process. */
    final int id = IDS.incrementAndGet();

    private final int most;
    private volatile Key[] keys; // by number; this and the next are modified with the lock
    private volatile Key[] slots; // by hash; the length is a power of two
    private volatile int[] notes = new int[2 * NOTED_FIRST]; // two hashes per slot
    private int noted; // number of noted hashes; approximate, because it is not synchronized
    private final Tags[] lists = new Tags[LISTS]; // recent copies; used with the lock
    private int dice; // random numbers; a race between threads only repeats one
    private final AtomicInteger learning = new AtomicInteger();
    private volatile int count; // this and the next two are written with the lock
    private volatile long cost;
    private volatile long bytes;
    private volatile int mostKeys;
    private volatile long mostCost;

    KeyTable(int mostKeys) {
        most = mostKeys;
        keys = new Key[Math.min(FIRST, most)];
        slots = new Key[slotsOf(keys.length)];
        this.mostKeys = Math.min(mostKeys, Welcome.LEAST_KEYS);
        mostCost = Welcome.KEY_BYTES_UNTOLD / GENERATIONS;
    }

    private static int slotsOf(int keys) {
        return Math.max(PROBES, SLOTS_A_KEY * Integer.highestOneBit(keys));
    }

    /** Returns the daemon's charge for a numbered key. */
    static int costOf(int bytes) {
        return (bytes + 31) / 32 * 32 + 128;
    }

    /** Applies the limits of a daemon. */
    void limit(Welcome welcome) {
        mostKeys = (int) Math.min(most, welcome.maxKeys);
        mostCost = welcome.maxKeyBytes / GENERATIONS;
    }

    /** Reports whether a daemon accepts all numbers in use. */
    boolean fits(Welcome welcome) {
        return count <= welcome.maxKeys && cost <= welcome.maxKeyBytes / GENERATIONS;
    }

    /** Returns the count of numbers in use, which are those below it. */
    int count() {
        return count;
    }

    boolean isFull() {
        return count >= mostKeys || cost + costOf(MEAN) > mostCost || bytes + MEAN > (long) MEAN * most;
    }

    Key key(int number) {
        return keys[number];
    }

    /** Returns the key with these labels, or null. */
    Key find(
            int hash, String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags) {
        Key[] slots = this.slots;
        int mask = slots.length - 1;
        for (int i = 0; i < PROBES; i++) {
            Key key = (Key) SLOT.getAcquire(slots, hash + i & mask);
            if (key == null) {
                return null;
            }
            if (key.hash == hash && key.is(service, operation, resource, type, kind, traceRoot, httpStatus, peerTags, httpMethod,
                    httpEndpoint, grpcStatus, serviceSource, synthetics, additionalTags)) {
                return key;
            }
        }
        return null;
    }

    /**
     * Reports whether a key with this hash was used before, so that it is worth learning. Each slot
     * has the latest hash, and one that stays for a while: otherwise keys that share a slot and are
     * used in rotation would never be recognized.
     */
    boolean wasSeenBefore(int hash) {
        int[] notes = this.notes;
        int last = noteOf(hash, notes);
        int kept = last + 1;
        if (notes[last] == hash || notes[kept] == hash) {
            return true;
        }
        notes[last] = hash;
        dice = dice * 1664525 + 1013904223;
        if (dice >>> 30 == 0) {
            notes[kept] = hash;
        }
        if (++noted >= notes.length / 2 && notes.length < 2 * NOTED) {
            growNotes(notes);
        }
        return false;
    }

    private static int noteOf(int hash, int[] notes) {
        return 2 * (hash >>> 16 ^ hash) & notes.length - 2;
    }

    /**
     * Doubles the slots, so that unique keys of other threads overwrite a hash less soon. Hashes
     * noted during the copy can be lost.
     */
    private void growNotes(int[] few) {
        if (!learning.compareAndSet(0, 1)) {
            return;
        }
        try {
            if (notes == few) {
                int[] many = new int[2 * few.length];
                for (int i = 0; i < few.length; i++) {
                    if (few[i] != 0) {
                        many[noteOf(few[i], many) | i & 1] = few[i];
                    }
                }
                notes = many;
            }
        } finally {
            learning.set(0);
        }
    }

    /**
     * Learns the key with these labels, whose encoding has the given length. Returns null if a
     * limit is reached or another thread has the lock.
     */
    Key learn(
            int keyBytes, int hash, String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags) {
        if (!hasRoom(keyBytes) || !learning.compareAndSet(0, 1)) {
            return null;
        }
        try {
            Key known = find(hash, service, operation, resource, type, kind, traceRoot, httpStatus, peerTags, httpMethod, httpEndpoint,
                    grpcStatus, serviceSource, synthetics, additionalTags);
            int slot = known != null || !hasRoom(keyBytes) ? -1 : slotFor(hash);
            if (slot < 0) {
                return known;
            }
            return place(slot, keyBytes, new Key(count, hash, service, operation, resource, type, kind, traceRoot, httpStatus,
                    shared(peerTags), httpMethod, httpEndpoint, grpcStatus, serviceSource, synthetics, shared(additionalTags)));
        } finally {
            learning.set(0);
        }
    }

    /** Learns a key from labels that are copies already. */
    Key learn(int keyBytes, Key labels) {
        if (!hasRoom(keyBytes) || !learning.compareAndSet(0, 1)) {
            return null;
        }
        try {
            Key known = labels.findIn(this);
            int slot = known != null || !hasRoom(keyBytes) ? -1 : slotFor(labels.hash);
            if (slot < 0) {
                return known;
            }
            return place(slot, keyBytes, labels.numbered(count));
        } finally {
            learning.set(0);
        }
    }

    /** Returns a copy of a list. Keys share the copy of a frequent list. */
    private Tags shared(Tags tags) {
        int place = Tags.hash(tags) & LISTS - 1;
        if (!Tags.same(lists[place], tags)) {
            lists[place] = Tags.copy(tags);
        }
        return lists[place];
    }

    private boolean hasRoom(int keyBytes) {
        return keyBytes <= LONGEST && count < mostKeys && cost + costOf(keyBytes) <= mostCost
                && bytes + keyBytes <= (long) MEAN * most;
    }

    /** Returns a free slot for a key, or -1 if there is none within reach. */
    private int slotFor(int hash) {
        if (count == keys.length) {
            grow();
        }
        return freeSlot(slots, hash);
    }

    /**
     * Doubles the capacity, and inserts the keys in the order of their numbers. No key is then
     * farther from its hash than before, so each finds a slot.
     */
    private void grow() {
        Key[] more = Arrays.copyOf(keys, Math.min(2 * keys.length, most));
        Key[] wider = new Key[slotsOf(more.length)];
        for (int number = 0; number < count; number++) {
            wider[freeSlot(wider, more[number].hash)] = more[number];
        }
        keys = more;
        slots = wider;
    }

    private static int freeSlot(Key[] slots, int hash) {
        for (int i = 0; i < PROBES; i++) {
            int slot = hash + i & slots.length - 1;
            if (slots[slot] == null) {
                return slot;
            }
        }
        return -1;
    }

    private Key place(int slot, int keyBytes, Key key) {
        int number = count;
        keys[number] = key;
        cost += costOf(keyBytes);
        bytes += keyBytes;
        count = number + 1; // published before any thread can find the key
        SLOT.setRelease(slots, slot, key);
        return key;
    }
}
