package main

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// writer commits a client's write, the n-th of all.
type writer interface {
	write(client int, n uint64) error
	close() error
}

// connections is how many connections all clients share, on both sides alike.
const connections = 8

// turn is what clients have done in a turn.
type turn struct {
	commits  int
	took     time.Duration
	p50, p99 time.Duration
	cpu      time.Duration // of the servers
	foreign  float64       // share of the processors that others used
}

func (t *turn) rate() float64 { return float64(t.commits) / t.took.Seconds() }

// cpuEach is the servers' CPU time for a commit, in microseconds.
func (t *turn) cpuEach() float64 { return float64(t.cpu.Microseconds()) / float64(max(t.commits, 1)) }

// numbers gives each write of this run a number of its own.
var numbers atomic.Uint64

// drive lets each client write, one write after the other, for about d.
func drive(k *cluster, w writer, clients int, d time.Duration) (*turn, error) {
	latencies := make([][]time.Duration, clients)
	errs := make([]error, clients)
	var wg sync.WaitGroup
	m := watchMachine(k)
	begin := time.Now()
	for i := range clients {
		wg.Go(func() {
			for last := begin; last.Sub(begin) < d; {
				if errs[i] = w.write(i, numbers.Add(1)); errs[i] != nil {
					return
				}
				now := time.Now()
				latencies[i] = append(latencies[i], now.Sub(last))
				last = now
			}
		})
	}
	wg.Wait()
	t := &turn{took: time.Since(begin)}
	t.cpu, t.foreign = m.end(k, t.took)
	all := slices.Concat(latencies...)
	slices.Sort(all)
	if t.commits = len(all); t.commits > 0 {
		t.p50, t.p99 = all[len(all)/2], all[len(all)*99/100]
	}
	return t, errors.Join(errs...)
}

// putRequest is the id of the n-th write and its value.
func putRequest(id int64) []byte {
	b := make([]byte, 8+valueBytes)
	binary.LittleEndian.PutUint64(b, uint64(id))
	fill(b[8:], id)
	return b
}

// nodeConns are connections to one node.
type nodeConns []*grpc.ClientConn

func dialNode(addr string) (list nodeConns, err error) {
	for range connections {
		cc, err := dial(addr)
		if err != nil {
			return nil, errors.Join(err, list.close())
		}
		list = append(list, cc)
	}
	return list, nil
}

func (c nodeConns) of(client int) *grpc.ClientConn { return c[client%len(c)] }

func (c nodeConns) close() (err error) {
	for _, cc := range c {
		err = errors.Join(err, cc.Close())
	}
	return err
}

// callWriter writes rows, each by a call of its own.
type callWriter struct{ nodeConns }

func (w callWriter) write(client int, n uint64) error {
	_, err := call(context.Background(), w.of(client), callPut, putRequest(scattered(n)))
	return err
}

// streamWriter writes rows, each client over a stream of its own.
type streamWriter struct {
	nodeConns
	streams []grpc.ClientStream
}

func newStreamWriter(conns nodeConns) *streamWriter {
	return &streamWriter{conns, make([]grpc.ClientStream, clientsMax)}
}

func (w *streamWriter) write(client int, n uint64) error {
	_, err := w.ask(client, streamPut, putRequest(scattered(n)))
	return err
}

// ask sends a request and waits for its answer.
func (w *streamWriter) ask(client int, what byte, req []byte) (resp []byte, err error) {
	if w.streams[client] == nil {
		if w.streams[client], err = openStream(w.of(client)); err != nil {
			return nil, err
		}
	}
	return askStream(w.streams[client], what, req)
}

// bumpWriter adds 1 to a counter: each client to its own, or all to one.
type bumpWriter struct {
	*streamWriter
	hot bool
}

// bumps is how often counters of the hot-row measurement were added to.
var bumps atomic.Int64

func (w bumpWriter) write(client int, _ uint64) error {
	id := client % hotCounters
	if w.hot {
		id = 0
	}
	bumps.Add(1)
	_, err := w.ask(client, streamBump, binary.LittleEndian.AppendUint64(nil, uint64(id)))
	return err
}

// etcdWriter puts the same rows into etcd.
type etcdWriter []*clientv3.Client

func dialEtcd(addr string) (w etcdWriter, err error) {
	for range connections {
		cl, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w = append(w, cl)
	}
	return w, nil
}

func (w etcdWriter) write(client int, n uint64) error {
	b := putRequest(scattered(n))
	_, err := w[client%len(w)].Put(context.Background(), string(b[:8]), string(b[8:]))
	return err
}

func (w etcdWriter) close() (err error) {
	for _, cl := range w {
		err = errors.Join(err, cl.Close())
	}
	return err
}
