// Spring MVC on Tomcat with Actuator, and users in a MariaDB behind HikariCP.
//
//   java -cp 'CLASSES:LIB/*' Peer SOCKET POOL SETTING=VALUE ...
//
// SOCKET is the database's Unix socket, "-" for no database; POOL the connections of HikariCP. Each
// SETTING is one of Spring Boot's (server.tomcat.threads.max=20). Actuator has a port of its own: a
// full pool must not hide itself. The first line on standard output is the application's URL, the
// second the base of Actuator.

import java.util.HashMap;
import java.util.Map;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

@EnableAutoConfiguration
@RestController
public class Peer {
    private final ObjectProvider<JdbcTemplate> database;

    public Peer(ObjectProvider<JdbcTemplate> database) {
        this.database = database;
    }

    @GetMapping("/sleep")
    public String sleep(@RequestParam("ms") long ms) throws InterruptedException {
        Thread.sleep(ms);
        return "hello\n";
    }

    /** A statement that holds its connection for a while. */
    @GetMapping("/query")
    public String query(@RequestParam("ms") long ms) {
        database.getObject().queryForList("SELECT SLEEP(?)", ms / 1000.0);
        return "hello\n";
    }

    @PostMapping("/users")
    public Map<String, Object> add(@RequestBody Map<String, String> user) {
        database.getObject().update(
            "INSERT INTO d.users (name, mail) VALUES (?, ?)", user.get("name"), user.get("mail"));
        return Map.of("name", user.get("name"));
    }

    public static void main(String[] args) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("server.port", "0");
        settings.put("server.address", "127.0.0.1");
        settings.put("management.server.port", "0");
        settings.put("management.server.address", "127.0.0.1");
        settings.put("management.endpoints.web.exposure.include", "metrics,configprops");
        settings.put("spring.main.banner-mode", "off");
        settings.put("logging.level.root", "ERROR");
        if (args[0].equals("-")) {
            settings.put("spring.autoconfigure.exclude", DataSourceAutoConfiguration.class.getName());
        } else {
            settings.put("spring.datasource.url", "jdbc:mariadb://localhost/d?user=root&localSocket=" + args[0]);
            settings.put("spring.datasource.hikari.maximum-pool-size", args[1]);
        }
        for (int i = 2; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        SpringApplication application = new SpringApplication(Peer.class);
        application.setDefaultProperties(settings);
        ConfigurableApplicationContext context = application.run();
        var environment = context.getEnvironment();
        System.out.println("http://127.0.0.1:" + environment.getProperty("local.server.port"));
        System.out.println(
            "http://127.0.0.1:" + environment.getProperty("local.management.port") + "/actuator");
    }
}
