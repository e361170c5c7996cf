// A server whose data is in a mapped file: a request reads some of its pages, which memory holds
// when there is enough of it.
//
//	paged FILE MEGABYTES
//
// It makes the file. The first line on standard output is its URL.
package main

import (
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
)

const (
	page  = 4096
	pages = 8
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	megabytes, err := strconv.Atoi(os.Args[2])
	fail(err)
	size := megabytes << 20
	file, err := os.Create(os.Args[1])
	fail(err)
	piece := make([]byte, 1<<20)
	for i := 0; i < megabytes; i++ {
		rand.Read(piece)
		_, err := file.Write(piece)
		fail(err)
	}
	fail(file.Sync())
	data, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	fail(err)
	// Reading ahead would hide that memory is short.
	fail(syscall.Madvise(data, syscall.MADV_RANDOM))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sum byte
		for i := 0; i < pages; i++ {
			sum += data[rand.Intn(size/page)*page]
		}
		fmt.Fprintf(w, "%d\n", sum)
		io.Copy(io.Discard, r.Body)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fail(err)
	fmt.Printf("http://%s\n", listener.Addr())
	fail(http.Serve(listener, handler))
}
