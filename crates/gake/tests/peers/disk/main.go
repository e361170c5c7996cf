// A service that answers when a disk has written what the request left.
//
//	disk FILE
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
	"syscall"
	"unsafe"
)

const (
	block  = 4096
	blocks = 4096
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// aligned is a block where direct writes take it from.
func aligned() []byte {
	twice := make([]byte, 2*block)
	skip := block - int(uintptr(unsafe.Pointer(&twice[0]))%block)
	return twice[skip%block : skip%block+block]
}

func main() {
	// Past the page cache, and to the medium itself before the write returns.
	flags := os.O_CREATE | os.O_RDWR | syscall.O_DIRECT | syscall.O_DSYNC
	file, err := os.OpenFile(os.Args[1], flags, 0o600)
	fail(err)
	fail(syscall.Fallocate(int(file.Fd()), 0, 0, blocks*block))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := file.WriteAt(aligned(), rand.Int63n(blocks)*block); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "written\n")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fail(err)
	fmt.Printf("http://%s\n", listener.Addr())
	fail(http.Serve(listener, handler))
}
