import datadog.trace.api.DDTags;
import datadog.trace.api.GlobalTracer;
import datadog.trace.api.Trace;
import datadog.trace.api.interceptor.MutableSpan;
import datadog.trace.api.interceptor.TraceInterceptor;
import io.opentracing.Scope;
import io.opentracing.Span;
import io.opentracing.Tracer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;

/**
 * Writes one line per span with the data that a TraceInterceptor gets for the span. A tag with the line
 * number identifies the span in the tracer's output. The program uses only the public interface. SEEN
 * is the name of the file. SEEN_DOES is the action on every second trace: "empty" returns an empty
 * trace, "drop" sets the tag for traces dropped by the user.
 */
final class Seen implements TraceInterceptor {
  private final Writer to;
  private final String does;
  private int calls;
  private int rows;

  private Seen(Writer to, String does) {
    this.to = to;
    this.does = does;
  }

  /** Installs the interceptor and creates kinds of spans that a web shop lacks. */
  static void begin(int port) throws IOException {
    String does = System.getenv().getOrDefault("SEEN_DOES", "");
    Writer to = Files.newBufferedWriter(Path.of(System.getenv("SEEN")));
    if (!GlobalTracer.get().addTraceInterceptor(new Seen(to, does))) {
      throw new IllegalStateException("the interceptor was not taken");
    }
    many();
    nested(io.opentracing.util.GlobalTracer.get());
    synthetic(port);
  }

  @Override
  public int priority() {
    return Integer.MAX_VALUE - 10; // after other interceptors
  }

  @Override
  public synchronized Collection<? extends MutableSpan> onTraceComplete(Collection<? extends MutableSpan> trace) {
    calls++;
    boolean whole = trace.stream().anyMatch(span -> span == span.getLocalRootSpan());
    try {
      for (MutableSpan span : trace) {
        write(span, whole);
      }
      to.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    if (calls % 2 == 0 && does.equals("empty")) {
      return List.of();
    }
    if (calls % 2 == 0 && does.equals("drop")) {
      trace.forEach(span -> span.setTag(DDTags.MANUAL_DROP, true));
    }
    return trace;
  }

  private void write(MutableSpan span, boolean whole) throws IOException {
    StringJoiner line = new StringJoiner(",", "{", "}\n");
    line.add("\"row\":" + ++rows).add("\"call\":" + calls).add("\"whole\":" + whole);
    line.add("\"start\":" + span.getStartTime()).add("\"duration\":" + span.getDurationNano());
    line.add("\"error\":" + span.isError()).add("\"priority\":" + span.getSamplingPriority());
    line.add("\"local_root\":" + (span == span.getLocalRootSpan()));
    line.add("\"thread\":" + quoted(Thread.currentThread().getName()));
    line.add("\"service\":" + quoted(span.getServiceName())).add("\"root_service\":" + quoted(span.getLocalRootSpan().getServiceName()));
    line.add("\"operation\":" + quoted(span.getOperationName())).add("\"resource\":" + quoted(span.getResourceName()));
    line.add("\"type\":" + quoted(span.getSpanType())).add("\"tags\":" + tags(span.getTags()));
    to.write(line.toString());
    span.setMetric("seen.row", rows);
  }

  private static String tags(Map<String, Object> tags) {
    StringJoiner all = new StringJoiner(",", "{", "}");
    tags.forEach((key, value) -> all.add(quoted(key) + ":" + quoted(value)));
    return all.toString();
  }

  private static String quoted(Object value) {
    String text = String.valueOf(value == null ? "" : value);
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      quoted.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
    }
    return quoted.append('"').toString();
  }

  /** A trace with more spans than the tracer keeps, so that the interceptor gets it in parts. */
  @Trace(operationName = "seen.many")
  private static void many() {
    for (int i = 0; i < 2500; i++) {
      one();
    }
  }

  @Trace(operationName = "seen.one")
  private static void one() {}

  /** Spans of another service within a span of the shop, and gRPC and peer calls. */
  @Trace(operationName = "seen.nested")
  private static void nested(Tracer tracer) {
    Span outer = tracer.buildSpan("seen.outer").start();
    try (Scope ignored = tracer.activateSpan(outer)) {
      outer.setTag("service.name", "other");
      tracer.buildSpan("seen.inner").start().finish();
      tracer.buildSpan("grpc.server").withTag("span.type", "rpc").withTag("span.kind", "server").withTag("rpc.grpc.status_code", "5").start().finish();
      tracer.buildSpan("seen.call").withTag("span.kind", "client").withTag("peer.hostname", "db1").withTag("peer.service", "stock").start().finish();
    } finally {
      outer.finish();
    }
  }

  /** A request of a synthetic test whose trace started in another process. */
  private static void synthetic(int port) throws IOException {
    try (Socket socket = new Socket("127.0.0.1", port)) {
      String request = "GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nx-datadog-trace-id: 11\r\n"
          + "x-datadog-parent-id: 12\r\nx-datadog-origin: synthetics\r\nx-datadog-sampling-priority: 1\r\n\r\n";
      socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
      socket.getInputStream().readAllBytes();
    }
  }
}
