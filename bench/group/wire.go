package main

import (
	"context"
	"encoding/json"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// The service of a node in this benchmark: requests and answers are plain bytes, so
// that there is no contract to keep.
const (
	serviceName = "trireme.bench.Node"
	callPut     = "Put"   // id, value -> number
	callBump    = "Bump"  // id, token -> number: adds 1 to a counter
	callFill    = "Fill"  // first id, count -> number: many rows in one transaction
	callDump    = "Dump"  // least id -> ids and checksums of rows from there on
	callAdmin   = "Admin" // command -> its result, in JSON

	// callSession is a stream: a session of the node's, with one request and its answer
	// after the other. A request begins with a byte that says what it is. This is how
	// clients will talk to a node, since a message on a stream costs much less than a call.
	callSession = "Session"
	streamPut   = 'P'
	streamBump  = 'B'
)

// rawCodec passes []byte on as it is.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// handler answers one kind of call.
type handler func(s *nodeServer, ctx context.Context, req []byte) ([]byte, error)

// serviceDesc describes the service to gRPC.
func serviceDesc() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil)}
	for name, h := range map[string]handler{
		callPut: (*nodeServer).put, callBump: (*nodeServer).bump, callFill: (*nodeServer).fill,
		callDump: (*nodeServer).dump, callAdmin: (*nodeServer).admin,
	} {
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var req []byte
			if err := dec(&req); err != nil {
				return nil, err
			}
			resp, err := h(srv.(*nodeServer), ctx, req)
			if err != nil {
				return nil, toStatus(err)
			}
			return &resp, nil
		}})
	}
	d.Streams = []grpc.StreamDesc{{StreamName: callSession, ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, stream grpc.ServerStream) error { return srv.(*nodeServer).session(stream) }}}
	return d
}

// openStream begins a session over a stream.
func openStream(cc *grpc.ClientConn) (grpc.ClientStream, error) {
	return cc.NewStream(context.Background(), &serviceDesc().Streams[0], "/"+serviceName+"/"+callSession)
}

// askStream sends a request and waits for its answer.
func askStream(stream grpc.ClientStream, what byte, req []byte) (resp []byte, err error) {
	req = append([]byte{what}, req...)
	if err := stream.SendMsg(&req); err != nil && err != io.EOF { // then receiving says why
		return nil, err
	}
	err = stream.RecvMsg(&resp)
	return resp, err
}

// call makes a call of the service.
func call(ctx context.Context, cc *grpc.ClientConn, method string, req []byte) (resp []byte, err error) {
	err = cc.Invoke(ctx, "/"+serviceName+"/"+method, &req, &resp)
	return resp, err
}

// command is what callAdmin takes.
type command struct {
	Do   string // status, add, transfer, settings, profile, counters
	ID   uint64
	Addr string
	On   bool
}

// answer is what callAdmin returns.
type answer struct {
	Status    nodeStatus
	Followers []followerStatus
	Profile   []byte
	Counters  []int64
}

// nodeStatus is how a node stands.
type nodeStatus struct {
	ID, Leader           uint64
	Writable, Installing bool
	Applied, Committed   uint64 // index
	Number               uint64
	LogBytes             int64  // of all files
	LogAppended          int64  // since the start
	LogSyncs, LogEntries int64  // since the start
	Failed               string // why it has stopped
}

type followerStatus struct {
	ID, Match uint64
	State     string
}

// admin makes a call of callAdmin.
func admin(ctx context.Context, cc *grpc.ClientConn, cmd command) (a answer, err error) {
	req, err := json.Marshal(cmd)
	if err != nil {
		return a, err
	}
	resp, err := call(ctx, cc, callAdmin, req)
	if err == nil {
		err = json.Unmarshal(resp, &a)
	}
	return a, err
}
