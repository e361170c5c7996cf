// A Go net/http server that counts what it serves.
//
// The first line on standard output is its URL; at SIGTERM it prints how many requests it read
// and how many connections it accepted.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	var requests, connections atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil {
			time.Sleep(wait)
		}
		if work, err := strconv.Atoi(r.URL.Query().Get("work")); err == nil {
			var sum [sha256.Size]byte
			for i := 0; i < work; i++ {
				sum = sha256.Sum256(sum[:])
			}
		}
		io.WriteString(w, "hello\n")
	})
	server := &http.Server{
		Handler: handler,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	fmt.Printf("http://%s\n", listener.Addr())
	go server.Serve(listener)
	<-ended
	fmt.Printf("requests %d\nconnections %d\n", requests.Load(), connections.Load())
}
