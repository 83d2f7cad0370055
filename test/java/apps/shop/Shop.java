package shop;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import java.util.List;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.web.servlet.context.ServletWebServerInitializedEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.event.EventListener;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/**
 * A Spring Boot web application with an in-memory database. OpenTelemetry's Java agent creates its
 * spans, except those of /spin, of which the application creates as many as requested. It shuts
 * down gracefully when its standard input ends.
 */
@SpringBootApplication(exclude = DataSourceAutoConfiguration.class)
@RestController
public class Shop {
  private static final int ORDERS = 1000;
  private static final int[] STATUS = {200, 200, 201, 404, 500};
  private final JdbcTemplate database =
      new JdbcTemplate(new SingleConnectionDataSource("jdbc:h2:mem:shop", true));

  public static void main(String[] args) throws Exception {
    ConfigurableApplicationContext shop = SpringApplication.run(Shop.class, args);
    System.in.readAllBytes();
    shop.close(); // completes the requests in flight
    System.exit(0);
  }

  public Shop() {
    database.execute("CREATE TABLE orders (id INT PRIMARY KEY, customer VARCHAR)");
    database.execute("CREATE TABLE items (number INT, name VARCHAR, price INT)");
    database.execute("CREATE INDEX items_of ON items (number)");
    database.execute("INSERT INTO orders SELECT x, 'customer ' || x FROM SYSTEM_RANGE(0, 999)");
    database.execute("INSERT INTO items SELECT x / 8, 'item ' || MOD(x, 8), x * 100 FROM SYSTEM_RANGE(0, 7999)");
  }

  @EventListener
  public void started(ServletWebServerInitializedEvent event) {
    System.out.println("listening on " + event.getWebServer().getPort());
  }

  @GetMapping("/orders/{id}")
  public ResponseEntity<Map<String, Object>> order(@PathVariable("id") int id) {
    List<Map<String, Object>> orders = database.queryForList("SELECT customer FROM orders WHERE id = ?", id % ORDERS);
    List<Map<String, Object>> items = database.queryForList("SELECT name, price FROM items WHERE number = ?", id % ORDERS);
    return ResponseEntity.status(STATUS[id % STATUS.length]).body(Map.of("order", orders, "items", items, "id", id));
  }

  /** Ends the given number of spans as fast as possible. */
  @GetMapping("/spin/{spans}")
  public int spin(@PathVariable("spans") int spans) {
    Tracer tracer = GlobalOpenTelemetry.getTracer("shop");
    for (int i = 0; i < spans; i++) {
      tracer.spanBuilder("spin " + i % 16).setSpanKind(SpanKind.values()[i % 5]).setAttribute("db.system.name", "redis")
          .setAttribute("server.address", "cache").startSpan().end();
    }
    return spans;
  }
}
