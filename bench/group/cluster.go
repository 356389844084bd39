package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// cluster is a group of server processes and connections to them.
type cluster struct {
	c     *config
	dir   string
	nodes []*process // nil: it is down
	flags []roleFlags
	conns []*grpc.ClientConn // of Trireme, one for each node, for commands
}

const members = 3

// newCluster starts three servers of a kind.
func newCluster(c *config, kind string, change func(*roleFlags)) (*cluster, error) {
	dir, err := os.MkdirTemp(c.dir, kind+"-")
	if err != nil {
		return nil, err
	}
	k := &cluster{c: c, dir: dir}
	var peers []peer
	for i := range members {
		f := roleFlags{name: kind, id: uint64(i + 1), data: filepath.Join(dir, fmt.Sprint(i+1)), verbose: c.verbose, entries: c.role.entries}
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		if f.listen, err = freeAddr(); err != nil {
			return nil, err
		}
		peers = append(peers, peer{f.id, addr})
		if change != nil {
			change(&f)
		}
		k.flags = append(k.flags, f)
	}
	var lines []chan error
	for i := range k.flags {
		k.flags[i].peers = joinPeers(peers)
		p, line, err := spawn(k.flags[i])
		if err != nil {
			return nil, errors.Join(err, k.close())
		}
		k.nodes, lines = append(k.nodes, p), append(lines, line)
	}
	for i, line := range lines {
		select {
		case err = <-line:
		case <-time.After(startLimit):
			err = errors.New("it is not ready in time")
		}
		if err != nil {
			_ = k.close()
			return nil, fmt.Errorf("%s %d: %w\n%s", kind, i+1, err, k.nodes[i].err.Bytes())
		}
	}
	return k, nil
}

// newGroup starts three nodes of ours and makes the tables.
func newGroup(c *config, change func(*roleFlags)) (*cluster, error) {
	k, err := newCluster(c, "node", change)
	if err != nil {
		return nil, err
	}
	for _, f := range k.flags {
		cc, err := dial(f.listen)
		if err != nil {
			return nil, errors.Join(err, k.close())
		}
		k.conns = append(k.conns, cc)
	}
	leader, err := k.leader()
	if err == nil {
		_, err = k.command(leader, command{Do: "setup"})
	}
	if err == nil {
		err = k.settled()
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// dial connects to a node's service. After a loss it tries again soon: what is
// measured is the group, not a client's patience.
func dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithInitialWindowSize(windowBytes), grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second,
			Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.2, MaxDelay: 20 * time.Millisecond}}))
}

// close ends the servers and removes their data.
func (k *cluster) close() error {
	err := k.stop()
	return errors.Join(err, os.RemoveAll(k.dir))
}

// stop ends the servers.
func (k *cluster) stop() error {
	var errs []error
	for _, cc := range k.conns {
		_ = cc.Close()
	}
	k.conns = nil
	for i, p := range k.nodes {
		if p != nil {
			errs = append(errs, p.end())
			k.nodes[i] = nil
		}
	}
	return errors.Join(errs...)
}

// cpu is the CPU time of the servers that run.
func (k *cluster) cpu() (sum time.Duration) {
	for _, p := range k.nodes {
		if p != nil {
			sum += p.cpu()
		}
	}
	return sum
}

// commandLimit is how long a command may take.
const commandLimit = time.Minute

func (k *cluster) command(i int, cmd command) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	a, err := admin(ctx, k.conns[i], cmd)
	if err != nil {
		err = fmt.Errorf("node %d, %s: %w", i+1, cmd.Do, err)
	}
	return a, err
}

func (k *cluster) status(i int) (nodeStatus, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	a, err := admin(ctx, k.conns[i], command{Do: "status"})
	if err == nil && a.Status.Failed != "" && !a.Status.Installing {
		err = fmt.Errorf("node %d has stopped by itself: %s", i+1, a.Status.Failed)
	}
	return a.Status, err
}

// leader waits for the node that takes writes.
func (k *cluster) leader() (int, error) {
	var last error
	for until := time.Now().Add(startLimit); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		for i, p := range k.nodes {
			if p == nil {
				continue
			}
			s, err := k.status(i)
			if err == nil && s.Writable {
				return i, nil
			}
			last = err
		}
	}
	return 0, fmt.Errorf("no node takes writes: %w", last)
}

// settled waits until all nodes that run have applied what the leader has committed.
func (k *cluster) settled() error {
	leader, err := k.leader()
	if err != nil {
		return err
	}
	for i, p := range k.nodes {
		if p != nil && i != leader {
			if err := k.caughtUp(i, leader); err != nil {
				return err
			}
		}
	}
	return nil
}

// caughtUp waits until a node has applied what the leader has committed now.
func (k *cluster) caughtUp(i, leader int) error {
	want, err := k.status(leader)
	if err != nil {
		return err
	}
	var last nodeStatus
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if last, err = k.status(i); err == nil && !last.Installing && last.Applied >= want.Committed {
			return nil
		}
		select {
		case <-k.nodes[i].done:
			return fmt.Errorf("node %d has ended: %v\n%s", i+1, k.nodes[i].exit, k.nodes[i].err.Bytes())
		default:
		}
	}
	return fmt.Errorf("node %d does not catch up with index %d: %+v, %w", i+1, want.Committed, last, err)
}

// restart starts a node that was killed.
func (k *cluster) restart(i int) (err error) {
	k.nodes[i], err = start(k.flags[i])
	return err
}

// kill ends a node without a warning.
func (k *cluster) kill(i int) (at time.Time) {
	at = time.Now()
	p := k.nodes[i]
	k.nodes[i] = nil
	_ = p.cmd.Process.Kill()
	go func() { <-p.done }()
	return at
}

// etcdLeader finds the leader of an etcd cluster.
func (k *cluster) etcdLeader() (addr string, err error) {
	for until := time.Now().Add(startLimit); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		for _, f := range k.flags {
			if leads, err := etcdLeads(f.listen); err == nil && leads {
				return f.listen, nil
			}
		}
	}
	return "", errors.New("etcd has no leader")
}

func etcdLeads(addr string) (bool, error) {
	cl, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second})
	if err != nil {
		return false, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := cl.Status(ctx, addr)
	if err != nil {
		return false, err
	}
	return s.Leader == s.Header.MemberId, nil
}
