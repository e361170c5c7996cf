// grpc.testing.TestService in Go, with the health service and reflection, which counts what it
// serves.
//
// The first line on standard output is its address with the scheme http; at SIGTERM it prints the
// calls it took but those of reflection, and the messages that these received and sent.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	health_v1 "google.golang.org/grpc/health/grpc_health_v1"
	testing "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

var calls, received, sent atomic.Int64

type service struct {
	testing.UnimplementedTestServiceServer
}

// Answers with as many bytes as asked for, or with the status asked for.
func (service) UnaryCall(_ context.Context, in *testing.SimpleRequest) (*testing.SimpleResponse, error) {
	if asked := in.GetResponseStatus(); asked.GetCode() != 0 {
		return nil, status.Error(codes.Code(asked.GetCode()), asked.GetMessage())
	}
	body := make([]byte, in.GetResponseSize())
	return &testing.SimpleResponse{Payload: &testing.Payload{Body: body}}, nil
}

func reply(parameters []*testing.ResponseParameters, send func(*testing.StreamingOutputCallResponse) error) error {
	for _, one := range parameters {
		time.Sleep(time.Duration(one.GetIntervalUs()) * time.Microsecond)
		payload := &testing.Payload{Body: make([]byte, one.GetSize())}
		if err := send(&testing.StreamingOutputCallResponse{Payload: payload}); err != nil {
			return err
		}
	}
	return nil
}

func (service) StreamingOutputCall(in *testing.StreamingOutputCallRequest, stream testing.TestService_StreamingOutputCallServer) error {
	return reply(in.GetResponseParameters(), stream.Send)
}

func (service) StreamingInputCall(stream testing.TestService_StreamingInputCallServer) error {
	var size int
	for {
		in, err := stream.Recv()
		if err == io.EOF {
			answer := &testing.StreamingInputCallResponse{AggregatedPayloadSize: int32(size)}
			return stream.SendAndClose(answer)
		}
		if err != nil {
			return err
		}
		size += len(in.GetPayload().GetBody())
	}
}

func (service) FullDuplexCall(stream testing.TestService_FullDuplexCallServer) error {
	for {
		in, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := reply(in.GetResponseParameters(), stream.Send); err != nil {
			return err
		}
	}
}

// Counts the messages of a stream.
type counting struct {
	grpc.ServerStream
}

func (stream counting) RecvMsg(message any) error {
	err := stream.ServerStream.RecvMsg(message)
	if err == nil {
		received.Add(1)
	}
	return err
}

func (stream counting) SendMsg(message any) error {
	sent.Add(1)
	return stream.ServerStream.SendMsg(message)
}

func unary(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	calls.Add(1)
	received.Add(1)
	out, err := handle(ctx, in)
	if err == nil {
		sent.Add(1)
	}
	return out, err
}

func streams(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if strings.Contains(info.FullMethod, ".reflection.") {
		return handle(server, stream)
	}
	calls.Add(1)
	return handle(server, counting{stream})
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(unary),
		grpc.StreamInterceptor(streams),
		grpc.MaxConcurrentStreams(20),
	)
	testing.RegisterTestServiceServer(server, service{})
	health_v1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	fmt.Printf("http://%s\n", listener.Addr())
	go server.Serve(listener)
	<-ended
	fmt.Printf("calls %d\nreceived %d\nsent %d\n", calls.Load(), received.Load(), sent.Load())
}
