package io.github.spanstatsd.client;

/** Why a flush did not bring every span to every destination. */
public final class FlushException extends Exception {
    private static final long serialVersionUID = 1L;

    FlushException(String message) {
        super(message);
    }
}
