// A service in front of a MySQL or MariaDB database: each request is one query that takes 20 ms.
//
// Its arguments are the database's Unix socket and the most connections it opens (0: no bound).
// The first line on standard output is its URL; /metrics has the pool under the names that Go's
// Prometheus client gives it.
package main

import (
	"database/sql"
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
	db.SetMaxIdleConns(1000)

	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		stats := db.Stats()
		fmt.Fprintf(w, "go_sql_in_use_connections{db_name=\"peer\"} %d\n", stats.InUse)
		fmt.Fprintf(w, "go_sql_max_open_connections{db_name=\"peer\"} %d\n", stats.MaxOpenConnections)
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var slept int
		if err := db.QueryRowContext(r.Context(), "SELECT SLEEP(0.02)").Scan(&slept); err != nil {
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
