package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Keys used in rotation are all learned, although some of them share a slot for noted hashes. */
class RotationTest {
    private static final int KEYS = 4096;

    @Test
    void rotatingKeys_areAllLearned() {
        KeyTable table = new KeyTable(KEYS);
        Set<Integer> waiting = new HashSet<>();
        for (int i = 1; i <= KEYS; i++) {
            waiting.add(i * i * 0x9e3779b1);
        }
        for (int round = 0; round < 1000 && !waiting.isEmpty(); round++) {
            waiting.removeIf(table::wasSeenBefore);
        }
        assertEquals(Set.of(), waiting);
    }
}
