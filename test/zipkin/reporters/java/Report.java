import brave.Span;
import brave.Tracing;
import zipkin2.reporter.Encoding;
import zipkin2.reporter.brave.AsyncZipkinSpanHandler;
import zipkin2.reporter.urlconnection.URLConnectionSender;

/**
 * Reports spans with Brave: Report URL ENCODING REQUESTS. Each request has a client span of the
 * service front and the corresponding server span of the service cart. Every tenth has an error.
 */
public class Report {
  public static void main(String[] args) throws Exception {
    Encoding encoding = args[1].equals("json") ? Encoding.JSON : Encoding.PROTO3;
    try (Service front = new Service("front", args[0], encoding);
        Service cart = new Service("cart", args[0], encoding)) {
      for (int n = 0; n < Integer.parseInt(args[2]); n++) {
        Span client = front.tracing.tracer().newTrace().kind(Span.Kind.CLIENT).name("get cart");
        client.remoteServiceName("cart").remoteIpAndPort("127.0.0.1", 8080);
        client.tag("http.method", "GET").tag("http.status_code", "200").start();
        Span server = cart.tracing.tracer().joinSpan(client.context()).kind(Span.Kind.SERVER);
        server.name("get /cart/{id}").tag("http.route", "/cart/{id}").tag("http.method", "GET").start();
        if (n % 10 == 0) {
          server.error(new IllegalStateException("no \"cart\"\n"));
        }
        if (encoding == Encoding.PROTO3) {
          for (long begun = System.nanoTime(); System.nanoTime() - begun < 3000;) {
            // in protobuf, a span shorter than a microsecond has no duration, like an unfinished span
          }
        }
        server.finish();
        client.finish();
      }
    }
  }

  /** A process that reports its spans. */
  static class Service implements AutoCloseable {
    final URLConnectionSender sender;
    final AsyncZipkinSpanHandler handler;
    final Tracing tracing;

    Service(String name, String url, Encoding encoding) {
      sender = URLConnectionSender.newBuilder().endpoint(url).encoding(encoding).compressionEnabled(true).build();
      handler = AsyncZipkinSpanHandler.newBuilder(sender).alwaysReportSpans(true).build();
      tracing = Tracing.newBuilder().localServiceName(name).addSpanHandler(handler).build();
    }

    @Override public void close() {
      tracing.close();
      handler.close(); // reports the remaining spans
      sender.close();
    }
  }
}
