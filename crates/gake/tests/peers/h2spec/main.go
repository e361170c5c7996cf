// The cases of h2spec for clients of HTTP/2: a server for each, to which a command connects.
//
//	h2spec FROM_PORT 'COMMAND' [SECTION ...]
//
// The command gets the URL as its last argument; the cases of these sections alone have servers, if
// any are named (client/4). h2spec prints each case, and how many passed.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err == nil {
		err = h2spec.RunClientSpec(&config.Config{
			Host:         "127.0.0.1",
			Timeout:      time.Second,
			MaxHeaderLen: 4000,
			Strict:       true,
			FromPort:     port,
			Exec:         os.Args[2],
			Sections:     os.Args[3:],
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
