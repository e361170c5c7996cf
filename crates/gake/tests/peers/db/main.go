// A service in front of a MySQL or MariaDB database: each request is one query, and each
// request for /users one more row of d.users.
//
// Its arguments are the database's Unix socket, the most connections it opens (0: no bound), how
// many it keeps idle, and the query.
// The first line on standard output is its URL; /metrics has the pool under the names that Go's
// Prometheus client gives it.
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	_ "github.com/go-sql-driver/mysql"
)

func main() {
	db, err := sql.Open("mysql", fmt.Sprintf("root@unix(%s)/", os.Args[1]))
	check(err)
	pool, err := strconv.Atoi(os.Args[2])
	check(err)
	db.SetMaxOpenConns(pool)
	idle, err := strconv.Atoi(os.Args[3])
	check(err)
	db.SetMaxIdleConns(idle)

	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		stats := db.Stats()
		fmt.Fprintf(w, "go_sql_in_use_connections{db_name=\"peer\"} %d\n", stats.InUse)
		fmt.Fprintf(w, "go_sql_max_open_connections{db_name=\"peer\"} %d\n", stats.MaxOpenConnections)
		fmt.Fprintf(w, "# TYPE go_sql_max_idle_closed_total counter\n")
		fmt.Fprintf(w, "go_sql_max_idle_closed_total{db_name=\"peer\"} %d\n", stats.MaxIdleClosed)
	})
	http.HandleFunc("/users", func(w http.ResponseWriter, r *http.Request) {
		var user struct{ Name, Mail string }
		if err := json.NewDecoder(r.Body).Decode(&user); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		const insert = "INSERT INTO d.users (name, mail) VALUES (?, ?)"
		if _, err := db.ExecContext(r.Context(), insert, user.Name, user.Mail); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "{}\n")
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var answer int
		if err := db.QueryRowContext(r.Context(), os.Args[4]).Scan(&answer); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "hello\n")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("http://%s\n", listener.Addr())
	check(http.Serve(listener, nil))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
