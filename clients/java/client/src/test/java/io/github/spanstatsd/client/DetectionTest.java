package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

class DetectionTest {
    private static final String ID = "0123456789abcdef".repeat(4);

    @Test
    void environmentVariables_areUsed() {
        Map<String, String> otel = Map.of("OTEL_SERVICE_NAME", "named", "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=other, service.version=2 ,deployment.environment=staging,=x,y,host.name=h");
        Map<String, String> fields = Detection.of(otel).build().fields();
        assertEquals("named", fields.get("service"));
        assertEquals("2", fields.get("version"));
        assertEquals("staging", fields.get("env"));
        assertEquals("h", fields.get("host"));
        Map<String, String> datadog = new java.util.HashMap<>(otel);
        datadog.putAll(Map.of("DD_SERVICE", "shop", "DD_ENV", "prod", "DD_VERSION", "3", "DD_EXTERNAL_ENV", "it-false,cn-shop",
                "DD_GIT_COMMIT_SHA", "9f1c"));
        fields = Detection.of(datadog).build().fields();
        assertEquals("shop", fields.get("service"));
        assertEquals("prod", fields.get("env"));
        assertEquals("3", fields.get("version"));
        assertEquals("it-false,cn-shop", fields.get("external_env"));
        assertEquals("9f1c", fields.get("git_commit_sha"));
        fields = Detection.of(Map.of()).build().fields();
        assertFalse(fields.containsKey("service"));
        assertEquals("java", fields.get("lang"));
        assertNotEquals(fields.get("runtime_id"), Detection.of(Map.of()).build().fields().get("runtime_id"));
    }

    @Test
    void containerId_isFound() throws Exception {
        Path proc = Files.createTempDirectory("proc");
        assertEquals("", Detection.containerId(proc));
        String[][] cgroups = {
            {"12:memory:/docker/" + ID + "\n", ID},
            {"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + ID + ".scope\n", ID},
            {"1:name=x:/\n0::/\n", ""},
            {"9:pids:/ecs/task/0123456789abcdef0123456789abcdef-1234567\n", "0123456789abcdef0123456789abcdef-1234567"},
            {"1:x:/garden/6f265890-5165-7fab-6b52-18d1\n", "6f265890-5165-7fab-6b52-18d1"},
        };
        for (String[] c : cgroups) {
            Files.writeString(proc.resolve("cgroup"), c[0]);
            assertEquals(c[1], Detection.containerId(proc), c[0]);
        }
        Files.writeString(proc.resolve("cgroup"), "0::/\n");
        Files.writeString(proc.resolve("mountinfo"), "1 2 0:1 / / rw - overlay overlay rw\n3 2 8:1 /var/lib/docker/containers/" + ID
                + "/resolv.conf /etc/resolv.conf rw - ext4 /dev/sda1 rw\n");
        assertEquals(ID, Detection.containerId(proc));
    }
}
