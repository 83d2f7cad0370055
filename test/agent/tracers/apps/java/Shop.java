import com.sun.management.OperatingSystemMXBean;
import datadog.trace.api.GlobalTracer;
import datadog.trace.api.Trace;
import datadog.trace.api.interceptor.MutableSpan;
import datadog.trace.api.interceptor.TraceInterceptor;
import java.lang.management.ManagementFactory;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

/**
 * A small web application for the published dd-java-agent. The agent instruments its server, HTTP
 * calls and database calls; internal work is annotated.
 */
public class Shop extends Handler.Abstract {
  private static final String DATABASE = "jdbc:h2:mem:orders;DB_CLOSE_DELAY=-1";
  private static int port;
  private static boolean measured;

  public static void main(String[] args) throws Exception {
    if (System.getenv("SHOP_ODD") != null) {
      createTraced();
    } else {
      create();
    }
    measured = args.length > 0 && args[0].equals("measured");
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    server.addConnector(connector);
    server.setHandler(new Shop());
    server.start();
    port = connector.getLocalPort();
    if (System.getenv("SEEN") != null) {
      Seen.begin(port);
    }
    String each = System.getenv("SHOP_MEASURE");
    if (each != null) {
      measure(Integer.parseInt(each));
      return;
    }
    load(100);
    if (System.getenv("SHOP_ODD") != null) {
      odd(Files.readAllLines(Path.of(System.getenv("SHOP_ODD"))));
    }
    // The last spans end after their responses. The tracer sends statistics every ten seconds but not
    // on exit.
    Thread.sleep("true".equals(System.getenv("DD_TRACE_STATS_COMPUTATION_ENABLED")) ? 12000 : 1000);
    server.stop();
  }

  /** Creates a span per line, with tags as key=value and numbers as key#=value. */
  private static void odd(List<String> lines) {
    GlobalTracer.get().addTraceInterceptor(new OddTags(lines));
    oddAll(lines.size());
  }

  @Trace(operationName = "odd.all")
  private static void oddAll(int rows) {
    for (int row = 0; row < rows; row++) {
      oddOne();
    }
  }

  @Trace(operationName = "odd")
  private static void oddOne() {}

  /** Creates the database within a span of the shop that contains the version. */
  @Trace(operationName = "shop.create")
  private static void createTraced() throws SQLException {
    create();
  }

  private static void create() throws SQLException {
    try (Connection db = DriverManager.getConnection(DATABASE)) {
      db.createStatement().execute("CREATE TABLE orders (id INT PRIMARY KEY, stock INT)");
      db.createStatement().execute("INSERT INTO orders VALUES (0, 1), (1, 2), (2, 0), (4, 7)");
    }
  }

  /** Sends requests as eight concurrent users. */
  private static void load(int each) throws InterruptedException {
    Thread[] users = new Thread[8];
    for (int i = 0; i < users.length; i++) {
      int number = i;
      users[i] = new Thread(() -> use(number, each));
      users[i].start();
    }
    for (Thread user : users) {
      user.join();
    }
  }

  /** Prints the cost of a request for this process after a warm-up. */
  private static void measure(int each) throws InterruptedException {
    OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    load(each);
    long before = system.getProcessCpuTime();
    load(each);
    System.out.println("cpu us a request: " + (system.getProcessCpuTime() - before) / (8 * each) / 1000.0);
    Runtime.getRuntime().halt(0);
  }

  private static void use(int number, int each) {
    for (int i = 0; i < each; i++) {
      get("/order/" + (number + i) % 5);
    }
  }

  private static int get(String path) {
    try {
      URL url = new URL("http://127.0.0.1:" + port + path);
      HttpURLConnection connection = (HttpURLConnection) url.openConnection();
      int status = connection.getResponseCode();
      if (status == 200) {
        connection.getInputStream().readAllBytes();
      }
      return status;
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  @Override
  public boolean handle(Request request, Response response, Callback callback) throws Exception {
    String path = request.getHttpURI().getPath();
    if (path.startsWith("/order/")) {
      int id = Integer.parseInt(path.substring("/order/".length()));
      try {
        response.setStatus(get("/stock/" + look(id)));
      } catch (IllegalStateException e) {
        response.setStatus(500);
      }
      if (measured) {
        renderMeasured();
      } else {
        render();
      }
    }
    callback.succeeded();
    return true;
  }

  @Trace(operationName = "shop.look")
  private static int look(int id) throws SQLException {
    try (Connection db = DriverManager.getConnection(DATABASE);
        ResultSet row = db.createStatement().executeQuery("SELECT stock FROM orders WHERE id = " + id)) {
      if (!row.next()) {
        throw new IllegalStateException("no such order");
      }
      return row.getInt(1);
    }
  }

  @Trace(operationName = "render")
  private static void render() {
    part();
  }

  @Trace(operationName = "render", measured = true)
  private static void renderMeasured() {
    part();
  }

  @Trace(operationName = "render.part")
  private static void part() {}
}

/** Sets the tags of a trace's finished spans, since many tags can't be set in any other way. */
record OddTags(List<String> lines) implements TraceInterceptor {
  @Override
  public Collection<? extends MutableSpan> onTraceComplete(Collection<? extends MutableSpan> trace) {
    List<MutableSpan> spans = new ArrayList<>(trace);
    spans.removeIf(span -> !span.getOperationName().toString().equals("odd"));
    spans.sort(Comparator.comparing(MutableSpan::getStartTime));
    for (int row = 0; row < spans.size(); row++) {
      MutableSpan span = spans.get(row).setResourceName("row " + row);
      for (String tag : lines.get(row).split("\t")) {
        String key = tag.substring(0, tag.indexOf('=')), value = tag.substring(key.length() + 1);
        switch (key) {
          case "service" -> span.setServiceName(value);
          case "type" -> span.setSpanType(value);
          default -> {
            if (key.endsWith("#")) {
              span.setTag(key.substring(0, key.length() - 1), Integer.valueOf(value));
            } else {
              span.setTag(key, value);
            }
          }
        }
      }
    }
    return trace;
  }

  @Override
  public int priority() {
    return 1000;
  }
}
