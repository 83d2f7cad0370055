import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.extension.incubator.trace.samplers.ComposableSampler;
import io.opentelemetry.sdk.extension.incubator.trace.samplers.CompositeSampler;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.IdGenerator;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The counterpart of apps/chain with the OpenTelemetry SDK for Java and its composite samplers. It
 * creates its spans itself, because the Java agent does not support custom IDs.
 */
public class Chain {
  private static final String NEXT = System.getenv("NEXT_URL");
  private static final TextMapPropagator PROPAGATOR = W3CTraceContextPropagator.getInstance();
  private static final TextMapGetter<Headers> HEADERS =
      new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Headers headers) {
          return headers.keySet();
        }

        @Override
        public String get(Headers headers, String key) {
          return headers.getFirst(key);
        }
      };

  private final HttpClient client = HttpClient.newHttpClient();
  private final Tracer tracer;

  private Chain(Tracer tracer) {
    this.tracer = tracer;
  }

  public static void main(String[] args) throws Exception {
    SdkTracerProvider provider = provider();
    Chain chain = new Chain(provider.get("chain"));
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    ExecutorService workers = Executors.newFixedThreadPool(8);
    server.setExecutor(workers);
    server.createContext("/orders/", chain::order);
    server.start();
    System.out.println("listening on " + server.getAddress().getPort());
    System.in.readAllBytes();
    workers.shutdown(); // spans end after their responses
    workers.awaitTermination(1, TimeUnit.MINUTES);
    server.stop(0);
    provider.shutdown().join(1, TimeUnit.MINUTES);
    System.exit(0);
  }

  private static SdkTracerProvider provider() {
    String endpoint = System.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + "/v1/traces";
    String service = System.getenv("OTEL_SERVICE_NAME");
    return SdkTracerProvider.builder()
        .setResource(Resource.getDefault().merge(
            Resource.create(Attributes.builder().put("service.name", service).build())))
        .setSampler(sampler(System.getenv("SAMPLER").split(":")))
        .setIdGenerator(new Ids())
        .addSpanProcessor(BatchSpanProcessor.builder(
            OtlpHttpSpanExporter.builder().setEndpoint(endpoint).build()).setMaxQueueSize(100_000).build())
        .build();
  }

  private static Sampler sampler(String[] said) {
    ComposableSampler own = ComposableSampler.probability(Double.parseDouble(said[1]));
    return CompositeSampler.wrap(said[0].equals("parent") ? ComposableSampler.parentThreshold(own) : own);
  }

  private void order(HttpExchange exchange) throws IOException {
    Context above = PROPAGATOR.extract(Context.root(), exchange.getRequestHeaders(), HEADERS);
    Span span = tracer.spanBuilder("answer").setParent(above).setSpanKind(SpanKind.SERVER).startSpan();
    try (Scope here = span.makeCurrent()) {
      exchange.sendResponseHeaders(NEXT == null ? 200 : ask(), -1);
      exchange.close();
    } catch (InterruptedException e) {
      throw new IOException(e);
    } finally {
      span.end();
    }
  }

  private int ask() throws IOException, InterruptedException {
    Span span = tracer.spanBuilder("ask").setSpanKind(SpanKind.CLIENT).startSpan();
    try (Scope here = span.makeCurrent()) {
      HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(NEXT));
      PROPAGATOR.inject(Context.current(), request, (to, key, value) -> to.header(key, value));
      return client.send(request.build(), BodyHandlers.discarding()).statusCode();
    } finally {
      span.end();
    }
  }

  /** The n-th trace started here has the first 16 bytes of the SHA-256 of n (in decimal) as its ID. */
  private static final class Ids implements IdGenerator {
    private final AtomicInteger begun = new AtomicInteger();

    @Override
    public String generateTraceId() {
      byte[] n = Integer.toString(begun.getAndIncrement()).getBytes(StandardCharsets.UTF_8);
      try {
        byte[] sum = MessageDigest.getInstance("SHA-256").digest(n);
        return HexFormat.of().formatHex(Arrays.copyOf(sum, 16));
      } catch (NoSuchAlgorithmException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public String generateSpanId() {
      return IdGenerator.random().generateSpanId();
    }
  }
}
