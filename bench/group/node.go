package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// windowBytes is the flow-control window of connections with clients: that it is set
// saves gRPC measuring for a better one.
const windowBytes = 1 << 20

// serveNode is a node of the group, and the benchmark's service on it.
func serveNode(f *roleFlags) error {
	peers, self, err := f.parsePeers()
	if err != nil {
		return err
	}
	opt := group.Options{Env: env.Real(), FS: file.OS(f.data), Log: f.logger(), Group: benchGroup, ID: f.id,
		Storage: storageOptions(),
		Commit:  commit.Options{Outstanding: f.entries, Compression: commit.Compression{Off: f.plain}},
		Transport: func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			return transport.New(transport.Options{Listen: self.addr, Identity: id, AllowPlaintext: true,
				LogFormat: group.LogFormat, Logger: f.logger()}, h)
		}}
	if f.join {
		opt.Join, opt.Contact = true, []string{f.contact}
	} else {
		for _, p := range peers {
			opt.Founders = append(opt.Founders, group.Member{ID: p.id, Addr: p.addr})
		}
	}
	if err := os.MkdirAll(f.data, 0o700); err != nil {
		return err
	}
	lis, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	n, err := group.Open(opt)
	if err != nil {
		return err
	}
	srv := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.InitialWindowSize(windowBytes), grpc.InitialConnWindowSize(windowBytes))
	srv.RegisterService(serviceDesc(), &nodeServer{node: n, idle: make(chan *session, 1024)})
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(lis) }()
	ready()
	select {
	case err = <-failed:
	case <-told():
	}
	srv.Stop()
	if errors.Is(err, grpc.ErrServerStopped) {
		err = nil
	}
	return errors.Join(err, n.Close(), wrapped("the node has stopped by itself", n.Err()))
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
