package io.github.spanstatsd.bench;

import java.util.concurrent.locks.LockSupport;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** A pause before each burst, long enough for the previous spans to be sent. */
@State(Scope.Thread)
public class Pause {
    private static final int NANOS = 250_000;

    @Setup(Level.Invocation)
    public void rest() {
        LockSupport.parkNanos(NANOS);
    }
}
