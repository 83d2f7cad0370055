package io.github.spanstatsd.client;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The keys that are known, each with the number that is sent in its place. Any thread asks it, without a
 * lock; to learn a key a thread tries the one lock, and lets it be where another has it.
 *
 * <p>A key is found by the hash of its labels and compared label by label, so what is found can't be wrong.
 * It is looked for in a few slots and then given up, because somebody who chooses labels can have
 * them share a hash. What comes once is not learned: the first time only the hash is noted,
 * in a place that others overwrite, the second time the key gets its number, for as long as the table lives.
 *
 * <p>The table is as large as what it knows: it begins with room for a few keys, and whoever has the lock and finds
 * it full copies it into twice the room. The arrays that were never change then: each is filled before it is published,
 * and a key goes only into the one that was published last, with the lock. So a thread that still asks the one
 * before is told nothing wrong. At worst it misses a key that was learned since, sends it whole, and finds it with the lock.
 */
final class KeyTable {
    /** How many slots are looked at. */
    private static final int PROBES = 8;
    /** How many keys there is room for at first. */
    private static final int FIRST = 64;
    private static final int SLOTS_A_KEY = 4;
    /** How many places hashes are noted in, at first and at most. */
    private static final int NOTED_FIRST = 1 << 8;
    private static final int NOTED = 1 << 12;
    private static final int LISTS = 64;
    /** The longest key that is worth its place on the heap, and what all have at most in the mean. */
    private static final int LONGEST = 2048;
    private static final int MEAN = 128;
    /** While a table takes the place of another, a connection has keys of both. */
    private static final int GENERATIONS = 2;

    private static final AtomicInteger IDS = new AtomicInteger();
    private static final VarHandle SLOT = MethodHandles.arrayElementVarHandle(Key[].class);

    /** Unlike that of any other table in the process. */
    final int id = IDS.incrementAndGet();

    private final int most;
    private volatile Key[] keys; // by their numbers; this and the next are changed by whoever has the lock
    private volatile Key[] slots; // by their hashes, a power of two of them
    private volatile int[] notes = new int[2 * NOTED_FIRST]; // two hashes a place
    private int noted; // how many hashes, as far as threads saw each other count
    private final Tags[] lists = new Tags[LISTS]; // copies that were made last; whoever has the lock uses them
    private int dice; // random numbers, of which threads may throw the same one
    private final AtomicInteger learning = new AtomicInteger();
    private volatile int count; // this and the next two are written by whoever has the lock
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

    /** What a daemon charges for a key with a number. */
    static int costOf(int bytes) {
        return (bytes + 31) / 32 * 32 + 128;
    }

    /** Takes what a daemon takes, from here on. */
    void limit(Welcome welcome) {
        mostKeys = (int) Math.min(most, welcome.maxKeys);
        mostCost = welcome.maxKeyBytes / GENERATIONS;
    }

    /** Whether a daemon takes all numbers that were given. */
    boolean fits(Welcome welcome) {
        return count <= welcome.maxKeys && cost <= welcome.maxKeyBytes / GENERATIONS;
    }

    /** The numbers that were given are those below it. */
    int count() {
        return count;
    }

    boolean isFull() {
        return count >= mostKeys || cost + costOf(MEAN) > mostCost || bytes + MEAN > (long) MEAN * most;
    }

    Key key(int number) {
        return keys[number];
    }

    /** The key with these labels, or null. */
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
     * Whether a key with this hash came before, so that it is worth learning. A place has the hash that came last, and
     * one that stays for a while: of keys that share a place and come in rotation none would ever be met again.
     */
    boolean isAgain(int hash) {
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

    /** Makes twice the places, so that others' names that come once leave a hash its place for longer. What is noted meanwhile may be lost. */
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

    /** Learns the key with these labels, which has so many bytes. Null: there is no room for it, or another thread learns one. */
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

    /** The same for labels that are copies already. */
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

    /** A copy of a list, one for many keys where it comes often. */
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

    /** A slot for one more key, -1 where those that it may have are taken. */
    private int slotFor(int hash) {
        if (count == keys.length) {
            grow();
        }
        return freeSlot(slots, hash);
    }

    /**
     * Makes twice the room, by the keys' numbers: so none lies further from its hash than before, and each
     * finds a slot.
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
        count = number + 1; // before anybody can find it
        SLOT.setRelease(slots, slot, key);
        return key;
    }
}
