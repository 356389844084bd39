package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime/pprof"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/group"
)

// nodeServer is the benchmark's service on a node.
type nodeServer struct {
	node *group.Node
	idle chan *session

	mu      sync.Mutex
	profile bytes.Buffer
}

// session is one of the node, and memory of its calls.
type session struct {
	*txn.Session
	row     [2]types.Value
	key     []byte
	changes [1]record.Change
	batch   *types.Batch
}

// with lends a session. One whose call has failed is not used again.
func (s *nodeServer) with(fn func(*session) (uint64, error)) ([]byte, error) {
	var x *session
	select {
	case x = <-s.idle:
	default:
		one, err := s.node.NewSession()
		if err != nil {
			return nil, err
		}
		x = &session{Session: one}
	}
	number, err := fn(x)
	if err != nil {
		_ = x.Close() // its transaction may be broken; the node knows
		return nil, err
	}
	select {
	case s.idle <- x:
	default:
		err = x.Close()
	}
	return binary.LittleEndian.AppendUint64(nil, number), err
}

// run is one transaction.
func (x *session) run(ctx context.Context, opt txn.BeginOptions, fn func() error) (uint64, error) {
	if err := x.Begin(opt); err != nil {
		return 0, err
	}
	if err := fn(); err != nil {
		return 0, err
	}
	return x.Commit(ctx)
}

// session serves a stream, until the client ends it or a request fails.
func (s *nodeServer) session(stream grpc.ServerStream) error {
	one, err := s.node.NewSession()
	if err != nil {
		return toStatus(err)
	}
	x := &session{Session: one}
	defer x.Close()
	for {
		var req []byte
		if err := stream.RecvMsg(&req); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		number, err := x.request(stream.Context(), req)
		if err != nil {
			return toStatus(err)
		}
		resp := binary.LittleEndian.AppendUint64(nil, number)
		if err := stream.SendMsg(&resp); err != nil {
			return err
		}
	}
}

func (x *session) request(ctx context.Context, req []byte) (uint64, error) {
	if len(req) > 0 {
		switch req[0] {
		case streamPut:
			return x.put(ctx, req[1:])
		case streamBump:
			return x.bump(ctx, req[1:])
		}
	}
	return 0, errors.New("an unknown request")
}

func (s *nodeServer) put(ctx context.Context, req []byte) ([]byte, error) {
	return s.with(func(x *session) (uint64, error) { return x.put(ctx, req) })
}

func (s *nodeServer) bump(ctx context.Context, req []byte) ([]byte, error) {
	return s.with(func(x *session) (uint64, error) { return x.bump(ctx, req) })
}

// put inserts a row. That it is there already is the answer to a second try.
func (x *session) put(ctx context.Context, req []byte) (uint64, error) {
	if len(req) < 8 {
		return 0, errors.New("a put needs an id and a value")
	}
	number, err := x.run(ctx, txn.BeginOptions{}, func() error {
		o, err := x.Open(schemaName, rowsTable)
		if err != nil {
			return err
		}
		x.row = [2]types.Value{types.NewInt(int64(binary.LittleEndian.Uint64(req))), types.NewBytes(req[8:])}
		return x.Insert(o, x.row[:], false)
	})
	var there *table.DuplicateError
	if errors.As(err, &there) {
		if err := x.Settle(ctx); err != nil {
			return 0, err
		}
		return 0, x.Rollback()
	}
	return number, err
}

// bump adds 1 to a counter, once for each token.
func (x *session) bump(ctx context.Context, req []byte) (uint64, error) {
	if len(req) != 8 && len(req) != 8+len(entry.Token{}) {
		return 0, errors.New("a bump needs an id and a token or none")
	}
	var opt txn.BeginOptions
	opt.HasToken = copy(opt.Token[:], req[8:]) > 0
	number, err := x.run(ctx, opt, func() error { return x.add(int64(binary.LittleEndian.Uint64(req))) })
	var used *commit.TokenUsedError
	if errors.As(err, &used) {
		return used.Number, nil
	}
	return number, err
}

// add adds 1 to a counter.
func (x *session) add(id int64) error {
	o, err := x.Open(schemaName, countsTable)
	if err != nil {
		return err
	}
	schema := o.Table().Schema
	if x.batch == nil {
		x.batch = types.NewBatch([]*types.Type{&schema.Columns[0].Type, &schema.Columns[1].Type})
	}
	x.batch.Reset()
	x.key = schema.Keys[0].AppendKey(x.key[:0], types.NewInt(id))
	found, err := x.GetLocked(o, x.key, lock.RecordX, lock.Block, []int{0, 1}, x.batch)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("there is no counter %d", id)
	}
	number := x.batch.Vecs[1].Int64s()[0]
	x.row = [2]types.Value{types.NewInt(id), types.NewInt(number)}
	x.changes[0] = record.Change{Column: 1, Value: types.NewInt(number + 1)}
	_, err = x.Update(o, x.key, x.row[:], x.changes[:])
	return err
}

// fill inserts many rows in one transaction.
func (s *nodeServer) fill(ctx context.Context, req []byte) ([]byte, error) {
	if len(req) != 16 {
		return nil, errors.New("a fill needs an id and a count")
	}
	from, count := int64(binary.LittleEndian.Uint64(req)), int64(binary.LittleEndian.Uint64(req[8:]))
	return s.with(func(x *session) (uint64, error) {
		return x.run(ctx, txn.BeginOptions{}, func() error {
			o, err := x.Open(schemaName, rowsTable)
			if err != nil {
				return err
			}
			var value [valueBytes]byte
			for id := from; id < from+count; id++ {
				fill(value[:], id)
				x.row = [2]types.Value{types.NewInt(id), types.NewBytes(value[:])}
				if err := x.Insert(o, x.row[:], false); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// dumpRows is how many rows a dump returns at most, and dumpRow what each takes.
const (
	dumpRows = 64 << 10
	dumpRow  = 12
)

// dump returns ids and checksums of values of the rows from an id on, as this node has
// them.
func (s *nodeServer) dump(ctx context.Context, req []byte) (out []byte, err error) {
	if len(req) != 8 {
		return nil, errors.New("a dump needs an id")
	}
	_, err = s.with(func(x *session) (uint64, error) {
		return x.run(ctx, txn.BeginOptions{Options: trx.Options{ReadOnly: true}}, func() error {
			out, err = x.dump(rowsTable, int64(binary.LittleEndian.Uint64(req)), dumpRows)
			return err
		})
	})
	return out, err
}

func (x *session) dump(name string, from int64, limit int) (out []byte, err error) {
	o, err := x.Open(schemaName, name)
	if err != nil {
		return nil, err
	}
	schema := o.Table().Schema
	batch := types.NewBatch([]*types.Type{&schema.Columns[0].Type, &schema.Columns[1].Type})
	low := schema.Keys[0].AppendKey(nil, types.NewInt(from))
	scan := x.NewScan()
	if err := scan.Start(o, table.Range{Low: low, Columns: []int{0, 1}}); err != nil {
		return nil, err
	}
	for more := true; more && len(out) < limit*dumpRow; {
		if more, err = scan.Next(batch); err != nil {
			return nil, err
		}
		for i, id := range batch.Vecs[0].Int64s() {
			out = binary.LittleEndian.AppendUint64(out, uint64(id))
			if name == rowsTable {
				out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(batch.Vecs[1].BytesAt(i)))
			} else {
				out = binary.LittleEndian.AppendUint32(out, uint32(batch.Vecs[1].Int64s()[i]))
			}
		}
	}
	return out, nil
}

// admin does a command.
func (s *nodeServer) admin(ctx context.Context, req []byte) ([]byte, error) {
	var c command
	if err := json.Unmarshal(req, &c); err != nil {
		return nil, err
	}
	var a answer
	var err error
	switch c.Do {
	case "status":
		a.Status = s.status()
		for _, f := range s.node.Followers() {
			a.Followers = append(a.Followers, followerStatus{f.ID, f.Match, f.State})
		}
	case "setup":
		err = s.setup(ctx)
	case "add":
		err = s.node.Add(group.Member{ID: c.ID, Addr: c.Addr})
	case "promote":
		err = s.node.Promote(c.ID)
	case "remove":
		err = s.node.Remove(c.ID)
	case "transfer":
		err = s.node.Transfer(c.ID)
	case "counters":
		a.Counters, err = s.counters(ctx, int64(c.ID))
	case "profile":
		a.Profile, err = s.profiling(c.On)
	default:
		err = fmt.Errorf("there is no command %q", c.Do)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(&a)
}

func (s *nodeServer) status() nodeStatus {
	st := s.node.Status()
	out := nodeStatus{ID: st.ID, Leader: st.Leader, Writable: st.Writable, Installing: st.Provisioning,
		Applied: st.Applied, Committed: st.Committed, Number: st.Number, Failed: st.Error}
	if l := s.node.Log(); l != nil {
		x := l.Stats()
		out.LogBytes, out.LogAppended, out.LogSyncs, out.LogEntries = x.FileBytes, x.Bytes, x.Syncs, x.Entries
	}
	return out
}

// setup makes the tables and the counters.
func (s *nodeServer) setup(ctx context.Context) error {
	steps := []func(x *session) error{func(x *session) error {
		_, err := x.CreateSchema(dict.Schema{Name: schemaName}, nil)
		return err
	}}
	for _, t := range tables() {
		steps = append(steps, func(x *session) error {
			_, err := x.CreateTable(t, nil)
			return err
		})
	}
	steps = append(steps, func(x *session) error {
		o, err := x.Open(schemaName, countsTable)
		for _, from := range []int64{0, retryCounter} {
			for id := from; id < from+hotCounters && err == nil; id++ {
				err = x.Insert(o, []types.Value{types.NewInt(id), types.NewInt(0)}, false)
			}
		}
		return err
	})
	for _, step := range steps {
		if _, err := s.with(func(x *session) (uint64, error) {
			return x.run(ctx, txn.BeginOptions{}, func() error { return step(x) })
		}); err != nil {
			return err
		}
	}
	return nil
}

// counters returns the counters from one on.
func (s *nodeServer) counters(ctx context.Context, from int64) (list []int64, err error) {
	_, err = s.with(func(x *session) (uint64, error) {
		return x.run(ctx, txn.BeginOptions{Options: trx.Options{ReadOnly: true}}, func() error {
			b, err := x.dump(countsTable, from, hotCounters)
			for ; len(b) >= dumpRow && len(list) < hotCounters; b = b[dumpRow:] {
				list = append(list, int64(binary.LittleEndian.Uint32(b[8:])))
			}
			return err
		})
	})
	return list, err
}

// profiling starts a CPU profile, or ends it and returns it.
func (s *nodeServer) profiling(on bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.profile.Reset()
		return nil, pprof.StartCPUProfile(&s.profile)
	}
	pprof.StopCPUProfile()
	return s.profile.Bytes(), nil
}

// toStatus tells the client whether another member is to be asked.
func toStatus(err error) error {
	code := codes.Unknown
	switch {
	case errors.Is(err, group.ErrNotLeader):
		code = codes.FailedPrecondition
	case errors.Is(err, txn.ErrOutcomeUnknown):
		code = codes.Aborted
	}
	return status.Error(code, err.Error())
}
