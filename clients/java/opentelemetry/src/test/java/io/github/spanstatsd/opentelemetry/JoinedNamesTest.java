package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;

class JoinedNamesTest {
    private final JoinedNames names = new JoinedNames(true);

    @Test
    void name_isCreatedOnce() {
        String name = names.join("PostgreSQL", ".query");
        assertEquals("postgresql.query", name);
        assertSame(name, names.join(new String("PostgreSQL"), ".query"));
    }

    /** Results are correct for any number of names, and for names that share a slot. */
    @Test
    void manyNames_areCorrect() {
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 5000; i++) {
                assertEquals("system " + i + ".query", names.join("System " + i, ".query"));
                assertEquals("system " + i + ".", names.join("System " + i, "."));
            }
        }
        assertEquals("ab", names.join("a", "b"));
        assertEquals("ab", names.join("", "ab"));
        assertEquals("aa.bb", names.join("Aa", ".bb")); // "Aa" and "BB" have the same hash
        assertEquals("bb.bb", names.join("BB", ".bb"));
    }

    @Test
    void join_keepsCaseIfConfigured() {
        assertEquals("GET /Users", new JoinedNames(false).join("GET ", "/Users"));
    }

    @Test
    void lowerCase_onlyAsciiLetters() {
        assertEquals("Äbc İ.query", names.join("ÄBC İ", ".query"));
        String longest = "X".repeat(500);
        assertEquals(longest.toLowerCase() + ".query", names.join(longest, ".query"));
    }
}
