package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
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
        Work work = new Work();
        SpanReader shop = new SpanReader("shop", work);
        for (MadeSpan vector : vectors) {
            SpanReader reader = vector.service.equals("shop") ? shop : new SpanReader(vector.service, work);
            SpanData span = vector.data();
            assertEquals(new TreeMap<>(vector.labels), Shown.labels(reader.read(span)), vector.name);
            reader.clear();
            assertEquals(vector.flags & SpanstatsClient.TOP_LEVEL, SpanReader.isTopLevel(span) ? SpanstatsClient.TOP_LEVEL : 0, vector.name);
            assertEquals((vector.flags & SpanstatsClient.ERROR) != 0, span.getStatus().getStatusCode() == StatusCode.ERROR, vector.name);
        }
    }
}
