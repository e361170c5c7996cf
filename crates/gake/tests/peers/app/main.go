// A small shop on Go's net/http, in two versions: each instance answers with times and ids of its
// own, and -new differs from the old version in three known ways.
//
// The first line on standard output is its URL; at SIGTERM it prints what it was asked: how many
// requests, then a line for each in the order in which they came.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	instance = flag.String("name", "shop", "what distinguishes its choices from other instances'")
	changed  = flag.Bool("new", false, "be the new version")
	work     = flag.Duration("work", 0, "how long each answer takes")
)

type journal struct {
	sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.Lock()
	j.lines = append(j.lines, line)
	j.Unlock()
}

func main() {
	flag.Parse()
	asked := &journal{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	fmt.Printf("http://%s\n", listener.Addr())
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked.add(fmt.Sprintf("%s %s %q %q", r.Method, r.RequestURI, r.Header["X-Tag"], body))
		time.Sleep(*work)
		serve(w, r)
	}))
	<-ended
	asked.Lock()
	fmt.Printf("requests %d\n%s\n", len(asked.lines), strings.Join(asked.lines, "\n"))
}

// The known differences: every user's plan, one order in 25, the time that a search takes.
func serve(w http.ResponseWriter, r *http.Request) {
	_, last, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	number, _ := strconv.Atoi(last)
	answer := map[string]any{
		"number":  number,
		"at":      time.Now().UTC().Format(time.RFC3339Nano),
		"trace":   random(),
		"variant": chosen(r.URL.Path),
		"items":   []map[string]any{{"id": 1, "price": 9.5}, {"id": 2, "price": number}},
	}
	status := http.StatusOK
	switch kind, _, _ := strings.Cut(r.URL.Path[1:], "/"); kind {
	case "users":
		answer["plan"] = "basic"
		if *changed {
			answer["plan"] = "free"
		}
	case "orders":
		if *changed && number%25 == 0 {
			status = http.StatusInternalServerError
		}
	case "search":
		if *changed {
			time.Sleep(10**work + 10*time.Millisecond)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Instance", random())
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}

func random() string {
	bytes := make([]byte, 8)
	rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

// One of three, as an experiment assigns it: by chance between instances, and the same again when
// the same instance is asked again.
func chosen(path string) string {
	hash := fnv.New64a()
	io.WriteString(hash, *instance+path)
	return []string{"a", "b", "c"}[hash.Sum64()>>20%3]
}
