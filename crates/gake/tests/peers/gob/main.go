// Reads and writes results with Go's own encoding/gob, from the declaration of Vegeta's type:
// "json FILE" tells each result of a gob file as a line of JSON, "gob FILE" writes the file's
// results to standard output again.
package main

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

type Result struct {
	Attack    string        `json:"attack"`
	Seq       uint64        `json:"seq"`
	Code      uint16        `json:"code"`
	Timestamp time.Time     `json:"timestamp"`
	Latency   time.Duration `json:"latency"`
	BytesOut  uint64        `json:"bytes_out"`
	BytesIn   uint64        `json:"bytes_in"`
	Error     string        `json:"error"`
	Body      []byte        `json:"body"`
	Method    string        `json:"method"`
	URL       string        `json:"url"`
	Headers   http.Header   `json:"headers"`
}

func main() {
	file, err := os.Open(os.Args[2])
	check(err)
	out := bufio.NewWriter(os.Stdout)
	write := gob.NewEncoder(out).Encode
	if os.Args[1] == "json" {
		write = json.NewEncoder(out).Encode
	}
	decoder := gob.NewDecoder(bufio.NewReader(file))
	for {
		var result Result
		err := decoder.Decode(&result)
		if err == io.EOF {
			break
		}
		check(err)
		check(write(result))
	}
	check(out.Flush())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
