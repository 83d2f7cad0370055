package shop;

import datadog.trace.api.Trace;
import datadog.trace.api.interceptor.MutableSpan;
import io.opentelemetry.api.trace.Span;
import io.opentracing.util.GlobalTracer;
import jakarta.servlet.http.HttpServletRequest;
import java.util.List;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/**
 * The Java application of the benchmark: Spring Boot with an in-memory database. Datadog's Java agent
 * creates spans for the request, its handler, two queries and the annotated method.
 * OpenTelemetry's agent creates the same ones except that of the handler.
 */
@SpringBootApplication(exclude = DataSourceAutoConfiguration.class)
@RestController
public class Shop {
  private static final int ORDERS = 1000;
  private final JdbcTemplate database =
      new JdbcTemplate(new SingleConnectionDataSource("jdbc:h2:mem:shop", true));

  public static void main(String[] args) {
    SpringApplication.run(Shop.class, args);
  }

  public Shop() {
    database.execute("CREATE TABLE orders (id INT PRIMARY KEY, customer VARCHAR)");
    database.execute("CREATE TABLE items (number INT, name VARCHAR, price INT)");
    database.execute("CREATE INDEX items_of ON items (number)");
    database.execute("INSERT INTO orders SELECT x, 'customer ' || x FROM SYSTEM_RANGE(0, 999)");
    database.execute("INSERT INTO items SELECT x / 8, 'item ' || MOD(x, 8), x * 100 FROM SYSTEM_RANGE(0, 7999)");
  }

  @GetMapping({"/orders/{id}", "/named/orders/{id}"})
  public Map<String, Object> stable(@PathVariable("id") int id) {
    return find(id);
  }

  /** Names each request by its path, like badly instrumented applications. */
  @GetMapping({"/pages/{id}", "/named/pages/{id}"})
  public Map<String, Object> many(@PathVariable("id") int id, HttpServletRequest request) {
    String name = "GET " + request.getRequestURI();
    Span.current().updateName(name); // effective with OpenTelemetry's agent only
    if (GlobalTracer.get().activeSpan() instanceof MutableSpan span) {
      span.getLocalRootSpan().setResourceName(name);
    }
    return find(id);
  }

  @Trace(operationName = "shop.find")
  private Map<String, Object> find(int id) {
    List<Map<String, Object>> orders = database.queryForList("SELECT customer FROM orders WHERE id = ?", id % ORDERS);
    List<Map<String, Object>> items = database.queryForList("SELECT name, price FROM items WHERE number = ?", id % ORDERS);
    return Map.of("order", orders, "items", items, "id", id);
  }
}
