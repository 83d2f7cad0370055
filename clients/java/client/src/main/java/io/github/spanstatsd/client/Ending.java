package io.github.spanstatsd.client;

import java.io.IOException;

/** Why a connection ended. */
final class Ending extends IOException {
    private static final long serialVersionUID = 1L;

    /** The daemon disconnected without bye: it crashed, together with its data. */
    final boolean died;
    /** The connection was closed after both sides had finished. */
    final boolean inOrder;

    private Ending(String message, Throwable cause, boolean died, boolean inOrder) {
        super(message, cause);
        this.died = died;
        this.inOrder = inOrder;
    }

    /** Reports whether the daemon said bye. */
    boolean isBye() {
        return inOrder && !died;
    }

    static Ending bye(DaemonMessages.Bye bye) {
        return new Ending(bye.toString(), null, false, true);
    }

    static Ending endOfStream() {
        return new Ending("the daemon closed the connection", null, true, true);
    }

    /** Returns the ending for a failed read: the daemon has disconnected. */
    static Ending reset(IOException cause) {
        return new Ending("the connection broke: " + cause.getMessage(), cause, true, false);
    }

    /** Returns the ending for a protocol violation, or for a connection closed by this side. */
    static Ending of(String message) {
        return new Ending(message, null, false, false);
    }
}
