package io.github.spanstatsd.client;

import java.io.IOException;
import java.util.List;

/** The daemon's shorter messages: the reply to a flush request, and bye. */
final class DaemonMessages {
    private DaemonMessages() {}

    /** The reply to a flush request. */
    static final class Answer {
        long id;
        boolean ok;
        String error = "";

        static Answer read(Unpack in) throws IOException {
            Answer answer = new Answer();
            in.body(name -> answer.entry(in, name));
            return answer;
        }

        private void entry(Unpack in, String name) throws IOException {
            switch (name) {
                case "id": id = in.number(-1); break;
                case "ok": ok = in.bool(); break;
                case "error": error = in.text(); break;
                default: in.skip(8);
            }
        }
    }

    /** Why the daemon ends a connection. */
    static final class Bye {
        String reason = "";
        String detail = "";
        List<Long> versions = List.of();

        static Bye read(Unpack in) throws IOException {
            Bye bye = new Bye();
            in.body(name -> bye.entry(in, name));
            return bye;
        }

        private void entry(Unpack in, String name) throws IOException {
            switch (name) {
                case "reason": reason = in.text(); break;
                case "detail": detail = in.text(); break;
                case "versions": versions = in.numbers(); break;
                default: in.skip(8);
            }
        }

        @Override
        public String toString() {
            return "the daemon said bye: " + reason + (detail.isEmpty() ? "" : ": " + detail)
                    + (versions.isEmpty() ? "" : ", it speaks versions " + versions);
        }
    }
}
