package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import io.github.spanstatsd.client.Shown;
import io.github.spanstatsd.client.SpanstatsClient;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.trace.data.SpanData;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class LabelsTest {
    /**
     * The daemon's own test generates the file from the labels that it derives from the same spans
     * over OTLP.
     */
    @Test
    void labels_equalThoseOfDaemon() throws IOException {
        String file = Files.readString(Path.of(System.getProperty("spanstatsd.labels")));
        MadeSpan[] vectors = new Gson().fromJson(file, MadeSpan[].class);
        assertTrue(vectors.length > 100, "there are " + vectors.length + " vectors");
        SpanReaders[] byConvention = {new SpanReaders("shop", false), new SpanReaders("s", false)};
        SpanReaders[] asSent = {new SpanReaders("shop", true), new SpanReaders("s", true)};
        int renamed = 0;
        for (MadeSpan vector : vectors) {
            int service = vector.service.equals("shop") ? 0 : 1;
            SpanData span = vector.data();
            assertEquals(new TreeMap<>(vector.labels), shown(byConvention[service], span), vector.name);
            renamed += vector.labelsAsSent == null ? 0 : 1;
            assertEquals(
                    new TreeMap<>(vector.labelsAsSent == null ? vector.labels : vector.labelsAsSent), shown(asSent[service], span),
                    vector.name + ", as sent");
            assertEquals(vector.flags & SpanstatsClient.TOP_LEVEL, SpanReader.isTopLevel(span) ? SpanstatsClient.TOP_LEVEL : 0, vector.name);
            assertEquals((vector.flags & SpanstatsClient.ERROR) != 0, span.getStatus().getStatusCode() == StatusCode.ERROR, vector.name);
        }
        assertTrue(renamed > 30, renamed + " vectors have another name");
    }

    private static Object shown(SpanReaders readers, SpanData span) {
        SpanReader reader = readers.at(0);
        Object labels = Shown.labels(reader.read(span));
        reader.clear();
        return labels;
    }

    @Test
    void theVariableIsTheDaemons() {
        assertFalse(SpanNames.areKept(null));
        assertFalse(SpanNames.areKept("convention"));
        assertTrue(SpanNames.areKept("as-sent"));
        assertThrows(IllegalArgumentException.class, () -> SpanNames.areKept("as sent"));
    }
}
