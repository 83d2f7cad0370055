package io.github.spanstatsd.client;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/** Default paths of the daemon's socket. docs/protocol.md defines them. */
final class SocketPaths {
    static final String DEFAULT = "/var/run/spanstatsd/spans.sock";

    private SocketPaths() {}

    /** Returns the paths in the order in which they are tried. */
    static List<String> all(UnaryOperator<String> environment) {
        List<String> all = new ArrayList<>();
        all.add(DEFAULT);
        try {
            Object user = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
            String runtime = environment.apply("XDG_RUNTIME_DIR");
            if (runtime != null && runtime.startsWith("/")) {
                add(all, Path.of(runtime, "spanstatsd"), user);
            }
            String temporary = environment.apply("TMPDIR");
            add(all, Path.of(temporary == null || temporary.isEmpty() ? "/tmp" : temporary, "spanstatsd-" + user), user);
        } catch (IOException | RuntimeException e) {
            // Unknown owner: the directory is not used.
        }
        return all;
    }

    /**
     * Adds a socket in a directory that only this user can access. In other directories, any user
     * could have created the socket.
     */
    private static void add(List<String> all, Path directory, Object user) throws IOException {
        if (Files.isDirectory(directory, NOFOLLOW_LINKS) && user.equals(Files.getAttribute(directory, "unix:uid", NOFOLLOW_LINKS))
                && ((Integer) Files.getAttribute(directory, "unix:mode", NOFOLLOW_LINKS) & 077) == 0) {
            all.add(directory.resolve("spans.sock").toString());
        }
    }
}
