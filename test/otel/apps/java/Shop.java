import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A small web application based on the JDK alone, without OpenTelemetry code: -javaagent loads the
 * SDK. It shuts down gracefully when its standard input ends.
 */
public class Shop {
  private static final int[] STATUS = {200, 200, 201, 404, 500};
  private static final HttpClient CLIENT = HttpClient.newHttpClient();

  public static void main(String[] args) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    ExecutorService workers = Executors.newFixedThreadPool(8);
    server.setExecutor(workers);
    server.createContext("/orders/", Shop::order);
    server.createContext("/stock/", exchange -> answer(exchange, STATUS[number(exchange) % 5]));
    server.start();
    System.out.println("listening on " + server.getAddress().getPort());
    System.in.readAllBytes();
    workers.shutdown(); // spans end after their responses
    workers.awaitTermination(1, TimeUnit.MINUTES);
    server.stop(0);
    System.exit(0);
  }

  private static void order(HttpExchange exchange) throws IOException {
    URI stock = URI.create(System.getenv("STOCK_URL") + "/stock/" + number(exchange));
    try {
      answer(exchange, CLIENT.send(HttpRequest.newBuilder(stock).build(), BodyHandlers.discarding()).statusCode());
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
  }

  private static int number(HttpExchange exchange) {
    String path = exchange.getRequestURI().getPath();
    return Integer.parseInt(path.substring(path.lastIndexOf('/') + 1));
  }

  private static void answer(HttpExchange exchange, int status) throws IOException {
    exchange.sendResponseHeaders(status, -1);
    exchange.close();
  }
}
