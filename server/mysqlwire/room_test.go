package mysqlwire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// roomConn is a connection without a network, whose session may hold so much.
func roomConn(mayHold int64) (*conn, *fakeSession) {
	sess := &fakeSession{f: &fake{}, mayHold: mayHold}
	c := &conn{s: &Server{closePrepared: func(*session.Prepared) {}}, stmts: map[uint32]*statement{}, sess: sess, caps: capDeprecateEOF, ctx: context.Background()}
	c.w = packetWriter{dst: io.Discard, seq: &c.seq}
	c.r.max = 64 << 20
	c.res.c = c
	return c, sess
}

// TestLongRowsAreCounted: of a row that shows a long value in many columns no more is made than a packet, or the memory of
// statements, has room for; and nothing of it stays.
func TestLongRowsAreCounted(t *testing.T) {
	const columns, size = 100, 100 << 10 // 10 MiB
	types1 := func(t types.Type) *types.Type { return &t }
	for name, typ := range map[string]*types.Type{
		"JSON":      types1(types.Type{Kind: types.KindJSON}),
		"converted": types1(types.Type{Kind: types.KindLongText, Collation: types.CollationLatin1Swedish}),
		"bytes":     types1(types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}),
		"set": types1(types.Type{Kind: types.KindSet, Collation: types.CollationUTF8MB40900AI,
			Members: []string{string(bytes.Repeat([]byte("m"), size))}}),
	} {
		for _, tc := range []struct {
			mayHold, packet int64
			want            sqlerr.Code
		}{{2 << 20, 64 << 20, 3170}, {0, 2 << 20, 1153}, {0, 64 << 20, 0}} {
			for _, binary := range []bool{false, true} {
				c, sess := roomConn(tc.mayHold)
				c.r.max = tc.packet
				c.res.start(c, binary)
				cols, list := make([]session.ResultColumn, columns), make([]*types.Type, columns)
				for i := range cols {
					cols[i].Type, list[i] = typ, typ
				}
				value := bytes.Repeat([]byte("x"), size)
				if typ.Kind == types.KindJSON {
					var err error
					if value, err = json.Parse(nil, fmt.Appendf(nil, "[%q]", value)); err != nil {
						t.Fatal(err)
					}
				}
				b := types.NewBatch(list)
				for i := range cols {
					if typ.Kind == types.KindSet {
						b.Column(i).AppendUint64(1)
					} else {
						b.Column(i).AppendBytes(value)
					}
				}
				b.SetLen(1)
				if err := c.res.Columns(cols); err != nil {
					t.Fatal(err)
				}
				err := c.res.Rows(b)
				var told *sqlerr.Error
				if errors.As(err, &told); (told == nil) != (tc.want == 0) || told != nil && told.Number != tc.want {
					t.Errorf("%s, binary %v, %+v: %v", name, binary, tc, err)
				}
				if made := cap(c.w.buf) + cap(c.res.scratch); made > 4<<20 {
					t.Errorf("%s, binary %v, %+v: %d KiB were made", name, binary, tc, made>>10)
				}
				if c.res.shrink(); sess.held != 0 || cap(c.w.buf)+cap(c.res.scratch) > 2*keepBuffer && tc.want == 0 {
					t.Errorf("%s: %d bytes are held, %d kept", name, sess.held, cap(c.w.buf))
				}
			}
		}
	}
}

// TestCursorsAreCounted: what cursors keep is accounted for until it has been fetched, or the statement is executed again, reset or
// closed; what there is no room for is sent at once.
func TestCursorsAreCounted(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const mayHold = 24 << 20
	c, sess := roomConn(mayHold)
	var rows countRows
	c.w.dst = &rows
	id := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	flush := func() {
		t.Helper()
		if err := c.w.flush(); err != nil {
			t.Fatal(err)
		}
	}
	const statements = 40
	for i := range statements {
		// From a few KiB up to more than a cursor may have.
		if err := c.prepare(c.ctx, fmt.Appendf(nil, "wide %d", []int{0, 3, 1000, 4000, 9000}[i%5])); err != nil {
			t.Fatal(err)
		}
	}
	open, spilled := 0, 0
	for step := range 500 {
		n := 1 + r.IntN(statements)
		st := c.stmts[uint32(n)]
		if st == nil {
			continue
		}
		if sess.mayHold = mayHold; r.IntN(5) == 0 {
			sess.mayHold = sess.held + 100<<10
		}
		var err error
		switch k := r.IntN(1000); {
		case k < 600:
			err = c.execute(c.ctx, &payload{b: append(id(n), cursorReadOnly, 1, 0, 0, 0)})
			if st.cursor == nil {
				spilled++
			} else {
				open++
			}
		case k < 900:
			if st.cursor != nil {
				err = c.fetch(&payload{b: append(id(n), id(1+r.IntN(5000))...)})
			}
		case k < 995:
			err = c.resetStatement(&payload{b: id(n)})
		default:
			c.closeStatement(&payload{b: id(n)})
		}
		if err != nil {
			t.Fatal(err)
		}
		flush()
		want := int64(0)
		for _, st := range c.stmts {
			if cur := st.cursor; cur != nil {
				want += cur.held
				if n := cur.memory(); n > cur.held || n > cursorMax*9/8 {
					t.Fatalf("seed %d: a cursor of %d bytes, of which %d are held", seed, n, cur.held)
				}
			}
		}
		if sess.held != want || c.cursorBytes != want {
			t.Fatalf("seed %d: %d bytes are held, %d counted instead of %d after %d steps", seed, sess.held, c.cursorBytes, want, step)
		}
	}
	if open < 30 || spilled < 30 {
		t.Errorf("seed %d: %d cursors were opened, %d results sent at once", seed, open, spilled)
	}
	// Together they have a limit, whatever memory there is.
	sess.mayHold = 0
	c.closeStatements()
	for range 20 {
		if err := c.prepare(c.ctx, []byte("wide 8000")); err != nil {
			t.Fatal(err)
		}
		before := rows.n
		if err := c.execute(c.ctx, &payload{b: append(id(int(c.lastStatement)), cursorReadOnly, 1, 0, 0, 0)}); err != nil {
			t.Fatal(err)
		}
		flush()
		if sent := rows.n - before; (sent > 7_000_000) != (c.stmts[c.lastStatement].cursor == nil) {
			t.Errorf("%d bytes were sent", sent)
		}
	}
	if c.cursorBytes > cursorsMax*9/8 || c.cursorBytes < cursorsMax/2 {
		t.Errorf("cursors of %d bytes", c.cursorBytes)
	}
	c.closeStatements()
	if c.cursorBytes != 0 || sess.held != 0 {
		t.Errorf("%d bytes are held, %d counted, of no cursor", sess.held, c.cursorBytes)
	}
}

// countRows counts what is sent.
type countRows struct{ n int64 }

func (c *countRows) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// TestLongNames: the names of a column are told up to a length, between characters.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("é", 1000)
	cols := make([]session.ResultColumn, 1000)
	for i := range cols {
		cols[i] = session.ResultColumn{Name: "x" + long, Table: long, Type: longText}
	}
	c, _ := roomConn(0)
	var sent countRows
	c.w.dst = &sent
	c.res.start(c, false)
	if err := errors.Join(c.res.Columns(cols), c.w.flush()); err != nil || sent.n > 600*int64(len(cols)) {
		t.Errorf("%d bytes are sent: %v", sent.n, err)
	}
	if name := cutName("x" + long); len(name) != maxColumnName-1 || strings.ToValidUTF8(name, "?") != name || cutName(long[:256]) != long[:256] {
		t.Errorf("%q", name)
	}
}

// TestTypesOfParametersAreCounted: what parameters a statement had stays for its next execution.
func TestTypesOfParametersAreCounted(t *testing.T) {
	c, sess := roomConn(0)
	const params = 60_000
	st := &statement{id: 1, prepared: &session.Prepared{Params: params}}
	c.stmts[1] = st
	p := append(binary.LittleEndian.AppendUint32(nil, 1), 0, 1, 0, 0, 0)
	p = append(append(p, bytes.Repeat([]byte{0xff}, (params+7)/8)...), 1) // all of them NULL
	p = append(p, bytes.Repeat([]byte{byte(fieldLong), 0}, params)...)
	preparedTexts[st.prepared] = "point"
	for range 2 {
		if err := c.execute(c.ctx, &payload{b: p}); err != nil {
			t.Fatal(err)
		}
		if sess.held < 2*params || cap(c.args) > keepArgs {
			t.Errorf("%d bytes are held, %d arguments kept", sess.held, cap(c.args))
		}
	}
	if c.closeStatements(); sess.held != 0 {
		t.Errorf("%d bytes are held", sess.held)
	}
}

// TestLongFramesAreCounted: what a frame has beyond the statement that runs is accounted for, and a frame that there is no memory for
// ends the connection.
func TestLongFramesAreCounted(t *testing.T) {
	text := bytes.Repeat([]byte("long "), 3<<20)
	for _, a := range []algorithm{zlibCompression, zstdCompression} {
		var wire bytes.Buffer
		out := frames{rw: &wire, algorithm: a, level: 3}
		// By hand: the server itself sends shorter ones.
		packed := out.compress(nil, text)
		wire.Write([]byte{byte(len(packed)), byte(len(packed) >> 8), byte(len(packed) >> 16), 0, byte(len(text)), byte(len(text) >> 8), byte(len(text) >> 16)})
		wire.Write(packed)
		stream := bytes.Clone(wire.Bytes())
		held, most := int64(0), int64(0)
		in := frames{rw: &wire, algorithm: a, hold: func(n int64) error {
			if held += n; most != 0 && held > most {
				held -= n
				return &sqlerr.Error{Number: 3170}
			}
			return nil
		}}
		var one [1]byte
		if _, err := in.Read(one[:]); err != nil || held < int64(cap(in.store))*3/4 {
			t.Fatalf("algorithm %d: %d bytes are held of %d: %v", a, held, cap(in.store), err)
		}
		if got, err := io.ReadAll(&in); err != nil || len(got) != len(text)-1 || held != 0 {
			t.Errorf("algorithm %d: %d bytes, %d held, %v", a, len(got), held, err)
		}
		wire.Reset()
		wire.Write(stream)
		most = 8 << 20
		in.seq = 0
		var told *sqlerr.Error
		if _, err := in.Read(one[:]); !errors.As(err, &told) || told.Number != 3170 || held != 0 {
			t.Errorf("algorithm %d: %v, %d bytes are held", a, err, held)
		}
	}
}

// promising is a stream that ends after its bytes, and tells before each read how much there has been.
type promising struct {
	bytes.Buffer
	before func(came int)
	came   int
}

func (p *promising) Read(b []byte) (int, error) {
	p.before(p.came)
	n, err := p.Buffer.Read(b[:min(len(b), 16<<10)])
	p.came += n
	return n, err
}

// TestPromisedFramesCostNothing: a frame's header alone has nothing accounted for, however long a frame it promises; what has come is.
func TestPromisedFramesCostNothing(t *testing.T) {
	const length = maxFrame - 1
	for _, sent := range []int{0, 1 << 10, 6 << 20} {
		held, most := int64(0), int64(0)
		wire := &promising{before: func(came int) {
			if limit := max(2*int64(came), maxBuffer) + readBuffer; held > limit {
				t.Fatalf("%d bytes are held when %d have come", held, came)
			}
			most = max(most, held)
		}}
		wire.Write([]byte{length & 0xff, length >> 8 & 0xff, length >> 16, 0, 0xff, 0xff, 0xff})
		wire.Write(make([]byte, sent))
		in := frames{rw: wire, algorithm: zlibCompression, hold: func(n int64) error { held += n; return nil }}
		if _, err := in.Read(make([]byte, 1)); err != io.ErrUnexpectedEOF || held != 0 || (most > 0) != (sent > maxBuffer) {
			t.Errorf("%d bytes: %v, %d are held, %d at most", sent, err, held, most)
		}
	}
}
