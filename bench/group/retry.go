package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

// ack is an acknowledged write.
type ack struct {
	at   time.Time
	node int
}

// crowd are clients that write one row after the other, or count, and try every node
// until one answers.
type crowd struct {
	k        *cluster
	pause    time.Duration // between two writes of a client
	patience time.Duration // with one node
	count    bool          // they add to counters, with commit tokens, and insert no rows

	stop   atomic.Bool
	tasks  sync.WaitGroup
	conns  []*grpc.ClientConn // each client has one to each node
	leader atomic.Int32       // who answered last

	mu     sync.Mutex
	acks   []ack
	ids    []int64 // of rows that are acknowledged
	counts []int64 // by client
	failed error   // an answer that no other try can change
}

// retryPause is how long it waits when it has asked every node in vain.
const retryPause = 2 * time.Millisecond

func newCrowd(k *cluster, clients int, pause, patience time.Duration, count bool) (*crowd, error) {
	w := &crowd{k: k, pause: pause, patience: patience, count: count, counts: make([]int64, clients)}
	for i := range clients {
		var conns []*grpc.ClientConn
		for _, f := range k.flags {
			cc, err := dial(f.listen)
			if err != nil {
				return nil, err
			}
			conns = append(conns, cc)
		}
		w.conns = append(w.conns, conns...)
		w.tasks.Go(func() { w.client(i, conns) })
	}
	return w, nil
}

// end waits until each client has its last answer.
func (w *crowd) end() error {
	w.stop.Store(true)
	w.tasks.Wait()
	for _, cc := range w.conns {
		_ = cc.Close()
	}
	return w.err()
}

func (w *crowd) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *crowd) client(i int, conns []*grpc.ClientConn) {
	for !w.stop.Load() {
		n := numbers.Add(1)
		id := scattered(n)
		method, req := callPut, putRequest(id)
		if w.count {
			token := newToken(n)
			method, req = callBump, append(binary.LittleEndian.AppendUint64(nil, uint64(retryCounter+i)), token[:]...)
		}
		node, err := w.write(conns, method, req)
		w.mu.Lock()
		if err != nil {
			w.failed = err
			w.mu.Unlock()
			return
		}
		w.acks = append(w.acks, ack{time.Now(), node})
		w.counts[i]++
		if !w.count {
			w.ids = append(w.ids, id)
		}
		w.mu.Unlock()
		if w.pause > 0 {
			time.Sleep(w.pause)
		}
	}
}

// newToken makes a commit token: a UUID of version 7.
func newToken(n uint64) (t entry.Token) {
	binary.BigEndian.PutUint64(t[:], uint64(time.Now().UnixMilli())<<16|7<<12)
	binary.BigEndian.PutUint64(t[8:], mix(n)>>2|1<<63)
	return t
}

// write asks one node after the other until one has committed, and returns which.
func (w *crowd) write(conns []*grpc.ClientConn, method string, req []byte) (node int, err error) {
	node = int(w.leader.Load())
	for tries, begin := 1, time.Now(); ; tries++ {
		ctx, cancel := context.WithTimeout(context.Background(), w.patience)
		_, err = call(ctx, conns[node], method, req)
		cancel()
		switch status.Code(err) {
		case codes.OK:
			w.leader.Store(int32(node))
			return node, nil
		case codes.Unimplemented, codes.InvalidArgument:
			return node, err
		}
		if time.Since(begin) > startLimit {
			return node, fmt.Errorf("no node has committed in %v, the last one says: %w", startLimit, err)
		}
		node = (node + 1) % len(conns)
		if tries%len(conns) == 0 {
			time.Sleep(retryPause)
		}
	}
}

// waitAck waits for an acknowledgement by another node than the one named, behind a
// point in time, and returns how long after it came.
func (w *crowd) waitAck(since time.Time, not int) (time.Duration, error) {
	for {
		if err := w.err(); err != nil {
			return 0, err
		}
		w.mu.Lock()
		for i := len(w.acks) - 1; i >= 0 && w.acks[i].at.After(since); i-- {
			first := w.acks[i]
			if first.node == not {
				continue
			}
			for ; i >= 0 && w.acks[i].at.After(since); i-- {
				if w.acks[i].node != not {
					first = w.acks[i]
				}
			}
			w.mu.Unlock()
			return first.at.Sub(since), nil
		}
		w.mu.Unlock()
		if time.Since(since) > startLimit {
			return 0, fmt.Errorf("nothing was committed for %v", startLimit)
		}
		time.Sleep(time.Millisecond)
	}
}

// gap is the longest time without an acknowledgement from one point in time to
// another, and how long after the first it began.
func (w *crowd) gap(from, to time.Time) (longest, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := from
	note := func(next time.Time) {
		if d := next.Sub(last); d > longest {
			longest, at = d, last.Sub(from)
		}
		last = next
	}
	for _, a := range w.acks {
		if a.at.Before(from) || a.at.After(to) {
			continue
		}
		note(a.at)
	}
	note(to)
	return longest, at
}

// rate is the acknowledgements a second between two points in time.
func (w *crowd) rate(from, to time.Time) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, a := range w.acks {
		if !a.at.Before(from) && a.at.Before(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds()
}

// verify compares the rows of all nodes with what was acknowledged: all of it is
// there, and nothing else.
func (w *crowd) verify() error {
	if err := w.k.settled(); err != nil {
		return err
	}
	for i := range w.k.nodes {
		rows, err := w.k.dump(i, 0)
		if err != nil {
			return err
		}
		var value [valueBytes]byte
		for _, id := range w.ids {
			sum, ok := rows[id]
			fill(value[:], id)
			if !ok {
				return fmt.Errorf("node %d has lost the acknowledged row %d", i+1, id)
			}
			if sum != crc32.ChecksumIEEE(value[:]) {
				return fmt.Errorf("node %d has another value in row %d", i+1, id)
			}
		}
		if len(rows) != len(w.ids) {
			return fmt.Errorf("node %d has %d rows, %d were acknowledged", i+1, len(rows), len(w.ids))
		}
	}
	return nil
}

// dump reads the rows of a node from an id on: ids and checksums of values.
func (k *cluster) dump(i int, from int64) (map[int64]uint32, error) {
	rows := map[int64]uint32{}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
		b, err := call(ctx, k.conns[i], callDump, binary.LittleEndian.AppendUint64(nil, uint64(from)))
		cancel()
		if err != nil {
			return nil, err
		}
		n := len(b) / dumpRow
		for ; len(b) >= dumpRow; b = b[dumpRow:] {
			from = int64(binary.LittleEndian.Uint64(b))
			rows[from] = binary.LittleEndian.Uint32(b[8:])
		}
		if n < dumpRows {
			return rows, nil
		}
		from++
	}
}

// counted sums the counters from one on, on every node.
func (k *cluster) counted(from int64, check func(sum int64) error) error {
	if err := k.settled(); err != nil {
		return err
	}
	for i := range k.nodes {
		a, err := k.command(i, command{Do: "counters", ID: uint64(from)})
		if err != nil {
			return err
		}
		var sum int64
		for _, n := range a.Counters {
			sum += n
		}
		if err := check(sum); err != nil {
			return fmt.Errorf("node %d: %w", i+1, err)
		}
	}
	return nil
}
