package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Enumeration;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;

/**
 * Behavior of the jar before Java 16, with the classes that an older virtual machine loads from it.
 */
class OldJavaTest {
    private static final File JAR = new File(System.getProperty("spanstatsd.jar"));

    /** Loads the library's classes as Java 11 does. */
    private static final class Java11 extends ClassLoader {
        Java11() {
            super(ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            try (JarFile jar = new JarFile(JAR, true, ZipFile.OPEN_READ, Runtime.Version.parse("11"))) {
                JarEntry entry = jar.getJarEntry(name.replace('.', '/') + ".class");
                byte[] bytes = jar.getInputStream(entry).readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (Exception e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    @Test
    void oldJava_isRefusedWithMessage() throws Exception {
        Class<?> config = new Java11().loadClass("io.github.spanstatsd.client.Config");
        Object builder = config.getMethod("builder").invoke(null);
        Object built = builder.getClass().getMethod("build").invoke(builder);
        Method open = config.getClassLoader().loadClass("io.github.spanstatsd.client.SpanstatsClient").getMethod("open", config);
        Throwable refusal = assertThrows(InvocationTargetException.class, () -> open.invoke(null, built)).getCause();
        assertEquals(UnsupportedOperationException.class, refusal.getClass());
        assertTrue(refusal.getMessage().contains("Java 16"), refusal.getMessage());
    }

    /** Java 11 can load every class except those for later releases. */
    @Test
    void classes_areBytecodeOfJava11() throws Exception {
        int classes = 0;
        try (JarFile jar = new JarFile(JAR)) {
            for (Enumeration<JarEntry> entries = jar.entries(); entries.hasMoreElements();) {
                JarEntry entry = entries.nextElement();
                if (!entry.getName().endsWith(".class")) continue;
                DataInputStream in = new DataInputStream(jar.getInputStream(entry));
                in.readInt();
                in.readUnsignedShort();
                assertEquals(entry.getName().startsWith("META-INF/versions/16/") ? 60 : 55, in.readUnsignedShort(), entry.getName());
                classes++;
            }
            assertEquals("true", jar.getManifest().getMainAttributes().getValue("Multi-Release"));
        }
        assertTrue(classes > 20);
    }
}
