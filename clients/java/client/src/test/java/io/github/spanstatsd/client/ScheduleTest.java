package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class ScheduleTest {
    private static final long SECOND = 1_000_000_000L;

    /**
     * Spans published at random times are sent together with the first one that waits. They are
     * never older than the limit, and sent before their interval ends, unless they were published
     * after the interval's last send.
     */
    @Test
    void delay_staysWithinLimits() {
        Random r = new Random(6);
        for (int round = 0; round < 300; round++) {
            long interval = new long[] {0, SECOND, 3 * SECOND, 10 * SECOND}[r.nextInt(4)];
            Schedule s = new Schedule(1 + r.nextInt(1 << 30), interval);
            long now = 1_700_000_000 * SECOND + r.nextInt((int) SECOND);
            long leaves = 0;
            for (int i = 0; i < 1000; i++) {
                now += (long) (-Math.log(1 - r.nextDouble()) * s.age / (1 + r.nextInt(8)));
                if (now > leaves) leaves = now + s.delay(now);
                assertTrue(leaves - now >= 0 && leaves - now <= s.age, "it waits " + (leaves - now) + " of " + s.age);
                if (interval == 0) continue;
                long last = now / interval * interval + interval - s.lead;
                assertTrue(now >= last || leaves <= last, "it leaves " + (leaves - last) + " too late");
            }
        }
    }

    /** Invalid intervals are ignored, and leads differ between tracers. */
    @Test
    void interval_isTheDaemons() {
        for (long interval : new long[] {0, 1, SECOND - 1, 3600 * SECOND + 1, Long.MAX_VALUE, -1}) {
            assertEquals(60 * SECOND, new Schedule(60 * SECOND, interval).delay(1_700_000_000 * SECOND));
        }
        Set<Long> leads = new HashSet<>();
        for (int i = 0; i < 20; i++) {
            Schedule s = new Schedule(3600 * SECOND, 10 * SECOND);
            assertTrue(s.lead >= Schedule.LEAST_LEAD && s.lead < Schedule.LEAST_LEAD + Schedule.DRAWN_LEAD);
            assertEquals(10 * SECOND - s.lead, s.delay(1_700_000_000 * SECOND));
            leads.add(s.lead);
        }
        assertTrue(leads.size() > 1);
    }

    @Test
    void backoff_grows() {
        Backoff b = new Backoff(5 * SECOND);
        long before = 0;
        for (int i = 0; i < 40; i++) {
            assertTrue(b.limit() >= before && b.limit() <= 5 * SECOND);
            before = b.limit();
            long pause = b.next();
            assertTrue(pause > 0 && pause <= before);
        }
        assertEquals(5 * SECOND, b.limit());
        b.reset(SECOND);
        assertEquals(5 * SECOND, b.limit());
        b.reset(6 * SECOND);
        assertTrue(b.limit() < SECOND);
    }
}
