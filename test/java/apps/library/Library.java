import io.github.spanstatsd.opentelemetry.AlwaysRecordSampler;
import io.github.spanstatsd.opentelemetry.SpanstatsSpanProcessor;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.util.concurrent.TimeUnit;

/** A program that sets up the SDK itself. It ends args[0] spans in traces of two spans and samples one trace in a hundred. */
public class Library {
  public static void main(String[] args) {
    Resource resource = Resource.getDefault().merge(Resource.builder().put("service.name", "library").build());
    SdkTracerProvider provider =
        SdkTracerProvider.builder()
            .setResource(resource)
            .setSampler(AlwaysRecordSampler.of(Sampler.parentBased(Sampler.traceIdRatioBased(0.01))))
            .addSpanProcessor(SpanstatsSpanProcessor.create(resource))
            .addSpanProcessor(
                BatchSpanProcessor.builder(OtlpHttpSpanExporter.builder().setEndpoint(args[1]).build()).setMaxQueueSize(1 << 16).build())
            .build();
    Tracer tracer = provider.get("library");
    for (int i = 0; i < Integer.parseInt(args[0]) / 2; i++) {
      var request = tracer.spanBuilder("GET /carts/{id}").setSpanKind(SpanKind.SERVER)
          .setAllAttributes(Attributes.builder().put("http.request.method", "GET").put("http.response.status_code", 200).build()).startSpan();
      try (var scope = request.makeCurrent()) {
        tracer.spanBuilder("SELECT carts").setSpanKind(SpanKind.CLIENT).setAttribute("db.system.name", "postgresql").startSpan().end();
      }
      request.end();
    }
    if (!provider.shutdown().join(1, TimeUnit.MINUTES).isSuccess()) {
      throw new IllegalStateException("it does not end");
    }
  }
}
