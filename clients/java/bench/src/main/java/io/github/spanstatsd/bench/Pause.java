package io.github.spanstatsd.bench;

import java.util.concurrent.locks.LockSupport;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** A pause ahead of each burst, long enough for what was published to go its way. */
@State(Scope.Thread)
public class Pause {
    private static final int NANOS = 250_000;

    @Setup(Level.Invocation)
    public void rest() {
        LockSupport.parkNanos(NANOS);
    }
}
