// A service whose every request holds one lock for as long as its argument says.
//
// The first line on standard output is its URL; /metrics has the time that requests waited for the
// lock under the name that Go's Prometheus client gives the runtime's own count.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	held, err := time.ParseDuration(os.Args[1])
	check(err)
	var lock sync.Mutex
	var waited, waiting atomic.Int64
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		seconds := time.Duration(waited.Load()).Seconds()
		fmt.Fprintf(w, "go_sync_mutex_wait_total_seconds_total %f\n", seconds)
	})
	// Those who wait are counted as they do, not when they are done.
	go func() {
		for last := time.Now(); ; {
			time.Sleep(10 * time.Millisecond)
			now := time.Now()
			waited.Add(waiting.Load() * int64(now.Sub(last)))
			last = now
		}
	}()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		waiting.Add(1)
		lock.Lock()
		waiting.Add(-1)
		time.Sleep(held)
		lock.Unlock()
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
