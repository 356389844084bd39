package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/triremedb/trireme/e2e/servers"
	"github.com/triremedb/trireme/e2e/servers/ports"
)

const echoMethod = "/bench.Echo/Echo"

// serveEcho is a gRPC service that does nothing but answer, with so many bytes.
func serveEcho(address string, size int) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	answer := wrapperspb.Bytes(make([]byte, size))
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "bench.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Echo",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return answer, decode(new(wrapperspb.BytesValue))
		}}}}, struct{}{})
	return s.Serve(l)
}

// startEcho starts it as a process of its own.
func (b *bench) startEcho(size int) (*servers.Process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	port, err := ports.Free()
	if err != nil {
		return nil, "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p, err := servers.StartProcess(filepath.Join(b.dir, "echo.log"), self, "-echo", address, "-answer", fmt.Sprint(size))
	return p, address, err
}
