// A real Tomcat whose handler sleeps.
//
//   java -cp 'LIB/*' Peer.java THREADS_MAX MAX_CONNECTIONS ACCEPT_COUNT SLEEP_MS
//
// The first line on standard output is its URL, the second the base of an Actuator beside it, on a
// port of its own as management.server.port gives: a full pool must not hide itself. Its metrics
// are those of Tomcat's own ThreadPool MBean, which is where Spring Boot takes them from.
// At SIGTERM it prints how many requests its handler took.

import com.sun.net.httpserver.HttpServer;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.logging.Level;
import java.util.logging.Logger;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http2.Http2Protocol;

public class Peer {
    /** Metrics of Actuator and the attributes of the MBean. */
    static final Map<String, String> METRICS = Map.of(
        "tomcat.threads.busy", "currentThreadsBusy",
        "tomcat.threads.config.max", "maxThreads",
        "tomcat.connections.current", "connectionCount",
        "tomcat.connections.config.max", "maxConnections");

    public static void main(String[] args) throws Exception {
        Logger.getLogger("").setLevel(Level.SEVERE);
        long sleep = Long.parseLong(args[3]);
        LongAdder requests = new LongAdder();

        Connector connector = new Connector("org.apache.coyote.http11.Http11NioProtocol");
        connector.setPort(0);
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxThreads", args[0]);
        connector.setProperty("maxConnections", args[1]);
        connector.setProperty("acceptCount", args[2]);
        // A connection of the load is not to be closed for its age.
        connector.setProperty("maxKeepAliveRequests", "-1");
        // HTTP/2 in clear, by prior knowledge.
        connector.addUpgradeProtocol(new Http2Protocol());

        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat-peer").toString());
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "sleep", new HttpServlet() {
            @Override
            protected void doGet(HttpServletRequest request, HttpServletResponse response)
                    throws IOException {
                requests.increment();
                try {
                    Thread.sleep(sleep);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
                response.setContentType("text/plain");
                response.getOutputStream().write("hello\n".getBytes(StandardCharsets.US_ASCII));
            }
        });
        context.addServletMappingDecoded("/*", "sleep");
        tomcat.start();
        int management = actuator();
        System.out.println("http://127.0.0.1:" + connector.getLocalPort());
        System.out.println("http://127.0.0.1:" + management + "/actuator");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("requests " + requests.sum())));
        tomcat.getServer().await();
    }

    static int actuator() throws Exception {
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        ObjectName pool =
            beans.queryNames(new ObjectName("*:type=ThreadPool,*"), null).stream()
                .filter(name -> name.getKeyProperty("subType") == null)
                .findFirst().orElseThrow();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/actuator/metrics", exchange -> {
            String name = exchange.getRequestURI().getPath().replaceFirst("^/actuator/metrics/?", "");
            String json = null;
            if (name.isEmpty()) {
                json = "{\"names\":[\"" + String.join("\",\"", METRICS.keySet()) + "\"]}";
            } else if (METRICS.containsKey(name)) {
                try {
                    json = "{\"name\":\"" + name + "\",\"measurements\":[{\"statistic\":\"VALUE\","
                        + "\"value\":" + beans.getAttribute(pool, METRICS.get(name)) + "}]}";
                } catch (Exception error) {
                    throw new IOException(error);
                }
            }
            byte[] body = json == null ? new byte[0] : json.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(json == null ? 404 : 200, body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        return server.getAddress().getPort();
    }
}
