package io.github.spanstatsd.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** CPU time of a thread's bursts. Wall time would include other load on the machine. */
@State(Scope.Thread)
@AuxCounters(AuxCounters.Type.EVENTS)
public class Cost {
    static final int BURST = 512;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    public long nanos;
    public long spans;
    public long refused;
    private long begun;

    @Setup(Level.Iteration)
    public void reset() {
        nanos = spans = refused = 0;
    }

    void begin() {
        begun = THREADS.getCurrentThreadCpuTime();
    }

    void end(int refused) {
        nanos += THREADS.getCurrentThreadCpuTime() - begun;
        spans += BURST;
        this.refused += refused;
    }
}
