// One handler over every version of HTTP: in clear (1.1, and 2 by prior knowledge), over TLS (1.1
// and 2 by ALPN, with an offer of 3), and over QUIC (3), which counts what it serves.
//
// The argument is the window of HTTP/2, for a stream and for a connection, in bytes.
//
// The first line on standard output is the URL in clear, the second the one over TLS and QUIC, the
// third the configurations of its Encrypted Client Hello in base64; at
// SIGTERM it prints the requests it read by protocol, the connections of TCP and of QUIC, and the
// bytes of bodies it read.
package main

import (
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Requests by major version of HTTP.
var requests [4]atomic.Int64
var connections, quicConnections, bytes atomic.Int64

func main() {
	clear, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	secure, packets := pair()
	port := secure.Addr().(*net.TCPAddr).Port
	offer := fmt.Sprintf("h3=\":%d\"; ma=60", port)

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	window, err := strconv.Atoi(os.Args[1])
	check(err)
	key, configurations := hello()
	config := &tls.Config{
		Certificates:             []tls.Certificate{certificate()},
		EncryptedClientHelloKeys: []tls.EncryptedClientHelloKey{key},
	}
	server := &http.Server{
		Handler:   handler(offer),
		Protocols: &protocols,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: window,
			MaxReceiveBufferPerStream:     window,
		},
		TLSConfig: config,
		ErrorLog:  log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}
	overQuic := &http3.Server{
		Handler:   handler(""),
		TLSConfig: http3.ConfigureTLSConfig(config.Clone()),
		ConnContext: func(ctx context.Context, _ *quic.Conn) context.Context {
			quicConnections.Add(1)
			return ctx
		},
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	fmt.Printf("http://%s\nhttps://%s\n%s\n", clear.Addr(), secure.Addr(), configurations)
	go server.Serve(clear)
	go server.ServeTLS(secure, "", "")
	go overQuic.Serve(packets)
	<-ended
	for version, name := range []string{"", "http1", "http2", "http3"} {
		if name != "" {
			fmt.Printf("%s %d\n", name, requests[version].Load())
		}
	}
	fmt.Printf("connections %d\nquic %d\n", connections.Load(), quicConnections.Load())
	fmt.Printf("bytes %d\n", bytes.Load())
}

// Reads the body, and answers with `bytes` bytes after `wait`; offers HTTP/3 unless `offer` is
// empty.
func handler(offer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.ProtoMajor].Add(1)
		read, _ := io.Copy(io.Discard, r.Body)
		bytes.Add(read)
		if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil {
			time.Sleep(wait)
		}
		if offer != "" && r.TLS != nil {
			w.Header().Set("Alt-Svc", offer)
		}
		if count, err := strconv.ParseInt(r.URL.Query().Get("bytes"), 10, 64); err == nil {
			w.Header().Set("Content-Length", strconv.FormatInt(count, 10))
			io.Copy(w, io.LimitReader(zeros{}, count))
			return
		}
		io.WriteString(w, "hello\n")
	})
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

// A TCP and a UDP socket with the same port.
func pair() (net.Listener, net.PacketConn) {
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		packets, err := net.ListenPacket("udp", listener.Addr().String())
		if err == nil {
			return listener, packets
		}
		listener.Close()
	}
}

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A key for the Encrypted Client Hello, and the list of its one configuration in base64 (RFC 9849,
// section 4).
func hello() (tls.EncryptedClientHelloKey, string) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	check(err)
	name := "public.test"
	contents := []byte{1, 0, 0x20, 0, 32}
	contents = append(contents, key.PublicKey().Bytes()...)
	// HKDF-SHA256 with AES-128-GCM.
	contents = append(contents, 0, 4, 0, 1, 0, 1, 0, byte(len(name)))
	contents = append(contents, name...)
	contents = append(contents, 0, 0)
	config := append([]byte{0xfe, 0x0d, 0, byte(len(contents))}, contents...)
	list := append([]byte{0, byte(len(config))}, config...)
	own := tls.EncryptedClientHelloKey{Config: config, PrivateKey: key.Bytes(), SendAsRetry: true}
	return own, base64.StdEncoding.EncodeToString(list)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
