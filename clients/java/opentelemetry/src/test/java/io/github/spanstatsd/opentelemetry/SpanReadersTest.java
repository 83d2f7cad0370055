package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SpanReadersTest {
    @Test
    void take_createsReaderIfAllAreInUse() {
        SpanReaders readers = new SpanReaders("shop", false);
        Set<Integer> places = new HashSet<>();
        int place = readers.take();
        for (; place >= 0; place = readers.take()) {
            assertTrue(places.add(place), "place " + place + " is taken twice");
        }
        assertTrue(places.size() >= Math.min(64, 2 * Runtime.getRuntime().availableProcessors()), places.toString());
        assertNotSame(readers.at(-1), readers.at(-1), "who finds none taken makes one");
        readers.give(-1);
        assertEquals(-1, readers.take());

        int given = places.iterator().next();
        SpanReader reader = readers.at(given);
        readers.give(given);
        assertEquals(given, readers.take());
        assertSame(reader, readers.at(given));
    }
}
