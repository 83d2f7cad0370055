package io.github.spanstatsd.client;

/** Reports that a flush did not deliver every span to every destination. */
public final class FlushException extends Exception {
    private static final long serialVersionUID = 1L;

    FlushException(String message) {
        super(message);
    }
}
