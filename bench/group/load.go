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
	write(ctx context.Context, client int, n uint64) error
	close() error
}

// connections is how many connections a number of clients share, on both sides alike.
func connections(clients int) int { return min(clients, 8) }

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
func drive(k *cluster, writers []writer, clients int, d time.Duration) (*turn, error) {
	latencies := make([][]time.Duration, clients)
	errs := make([]error, clients)
	var wg sync.WaitGroup
	m := watchMachine(k)
	begin := time.Now()
	for i := range clients {
		wg.Go(func() {
			w := writers[i%len(writers)]
			for last := begin; last.Sub(begin) < d; {
				if errs[i] = w.write(context.Background(), i, numbers.Add(1)); errs[i] != nil {
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

// nodeWriter writes rows to a node.
type nodeWriter struct{ cc *grpc.ClientConn }

func nodeWriters(addr string, n int) (list []writer, err error) {
	for range n {
		cc, err := dial(addr)
		if err != nil {
			return list, err
		}
		list = append(list, nodeWriter{cc})
	}
	return list, nil
}

func (w nodeWriter) write(ctx context.Context, _ int, n uint64) error {
	_, err := call(ctx, w.cc, callPut, putRequest(scattered(n)))
	return err
}

func (w nodeWriter) close() error { return w.cc.Close() }

func putRequest(id int64) []byte {
	b := make([]byte, 8+valueBytes)
	binary.LittleEndian.PutUint64(b, uint64(id))
	fill(b[8:], id)
	return b
}

// etcdWriter puts the same rows.
type etcdWriter struct{ cl *clientv3.Client }

func etcdWriters(addr string, n int) (list []writer, err error) {
	for range n {
		cl, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return list, err
		}
		list = append(list, etcdWriter{cl})
	}
	return list, nil
}

func (w etcdWriter) write(ctx context.Context, _ int, n uint64) error {
	b := putRequest(scattered(n))
	_, err := w.cl.Put(ctx, string(b[:8]), string(b[8:]))
	return err
}

func (w etcdWriter) close() error { return w.cl.Close() }

// bumps is how often counters of the hot-row measurement were added to.
var bumps atomic.Int64

// bumpWriter adds 1 to a counter: each client to its own, or all to one.
type bumpWriter struct {
	nodeWriter
	hot bool
}

func (w bumpWriter) write(ctx context.Context, client int, _ uint64) error {
	if w.hot {
		client = 0
	}
	bumps.Add(1)
	_, err := call(ctx, w.cc, callBump, binary.LittleEndian.AppendUint64(nil, uint64(client%hotCounters)))
	return err
}

func closeAll(list []writer) (err error) {
	for _, w := range list {
		err = errors.Join(err, w.close())
	}
	return err
}
