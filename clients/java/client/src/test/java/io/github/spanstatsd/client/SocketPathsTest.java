package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Default paths of the daemon's socket. */
class SocketPathsTest {
    /**
     * A private directory of the user is used. Directories accessible to others, and links to them,
     * are not.
     */
    @Test
    void directories_onlyPrivateOnesAreUsed(@TempDir Path base) throws Exception {
        Object user = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        Path runtime = Files.createDirectory(base.resolve("run")), temporary = Files.createDirectory(base.resolve("tmp"));
        Map<String, String> environment = Map.of("XDG_RUNTIME_DIR", runtime.toString(), "TMPDIR", temporary.toString());
        assertEquals(List.of(SocketPaths.DEFAULT), SocketPaths.all(environment::get));

        Path own = Files.createDirectory(runtime.resolve("spanstatsd"));
        Path other = Files.createDirectory(temporary.resolve("spanstatsd-" + user));
        Files.setPosixFilePermissions(own, PosixFilePermissions.fromString("rwx------"));
        Files.setPosixFilePermissions(other, PosixFilePermissions.fromString("rwxr-xr-x"));
        assertEquals(List.of(SocketPaths.DEFAULT, own + "/spans.sock"), SocketPaths.all(environment::get));

        Files.setPosixFilePermissions(other, PosixFilePermissions.fromString("rwx------"));
        assertEquals(List.of(SocketPaths.DEFAULT, own + "/spans.sock", other + "/spans.sock"), SocketPaths.all(environment::get));

        Files.delete(own);
        Files.createSymbolicLink(own, other);
        assertEquals(List.of(SocketPaths.DEFAULT, other + "/spans.sock"), SocketPaths.all(environment::get));
    }
}
