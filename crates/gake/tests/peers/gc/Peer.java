// A service that allocates much for each request, in a heap that is nearly full.
//
//   java -Xmx... Peer.java LIVE_MB GARBAGE_MB
//
// The first line on standard output is its URL; /metrics has the time spent on garbage collection
// under Micrometer's name.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.Executors;

public class Peer {
    static Object[] live;
    static volatile Object last;

    public static void main(String[] args) throws Exception {
        int garbage = Integer.parseInt(args[1]) << 10;
        // Small objects, since a collector has to visit each.
        live = new Object[Integer.parseInt(args[0]) << 13];
        for (int i = 0; i < live.length; i++) {
            live[i] = new byte[64];
        }
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(64));
        server.createContext("/metrics", exchange -> {
            double seconds = 0;
            for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
                seconds += bean.getCollectionTime() / 1e3;
            }
            answer(exchange, String.format(Locale.ROOT, "jvm_gc_pause_seconds_sum %f%n", seconds));
        });
        server.createContext("/", exchange -> {
            for (int i = 0; i < garbage; i++) {
                last = new byte[1000];
            }
            answer(exchange, "hello\n");
        });
        server.start();
        System.out.println("http://127.0.0.1:" + server.getAddress().getPort());
    }

    static void answer(HttpExchange exchange, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        exchange.sendResponseHeaders(200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }
}
