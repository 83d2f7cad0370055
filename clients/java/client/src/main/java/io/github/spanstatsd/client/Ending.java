package io.github.spanstatsd.client;

import java.io.IOException;

/** How a connection ended. */
final class Ending extends IOException {
    private static final long serialVersionUID = 1L;

    /** The daemon left without a word: it died, with what it held. */
    final boolean died;
    /** It left as one does that both sides are done with. */
    final boolean inOrder;

    private Ending(String message, Throwable cause, boolean died, boolean inOrder) {
        super(message, cause);
        this.died = died;
        this.inOrder = inOrder;
    }

    /** The daemon said bye. */
    boolean isBye() {
        return inOrder && !died;
    }

    static Ending bye(Told.Bye bye) {
        return new Ending(bye.toString(), null, false, true);
    }

    static Ending endOfStream() {
        return new Ending("the daemon closed the connection", null, true, true);
    }

    /** A read failed: the other end is gone. */
    static Ending reset(IOException cause) {
        return new Ending("the connection broke: " + cause.getMessage(), cause, true, false);
    }

    /** The daemon said what it may not, or this side left. */
    static Ending of(String message) {
        return new Ending(message, null, false, false);
    }
}
